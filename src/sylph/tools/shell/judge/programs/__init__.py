"""What each program does with its arguments, one module per kind of program."""
