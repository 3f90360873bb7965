"""The commands of the command line, loaded when they are called."""
