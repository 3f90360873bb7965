"""Sessions and their turns: what happens from a message to its answer."""
