"""The command line's own way to a running server: the same runtime, over a socket that only its owner can open."""
