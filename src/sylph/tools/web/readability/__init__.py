"""What of a page is worth reading."""
