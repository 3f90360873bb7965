"""Commands that connect to services."""
