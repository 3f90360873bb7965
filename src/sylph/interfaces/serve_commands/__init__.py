"""Commands of the command line that know the server: serve, token. Loaded by reference only."""
