"""The door for programs and browsers: HTTP over the same runtime as the command line."""
