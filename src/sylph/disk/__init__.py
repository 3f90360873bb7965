"""What is written to disk with care."""
