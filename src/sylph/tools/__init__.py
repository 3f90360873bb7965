"""The workspace tools, one module per family."""
