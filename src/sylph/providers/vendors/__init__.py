"""Services that are known by name."""
