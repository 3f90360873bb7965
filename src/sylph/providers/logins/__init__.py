"""Ways to log in that are not a key: OAuth in a browser or by a code, and what two services make of it."""
