"""One turn run from the command line."""
