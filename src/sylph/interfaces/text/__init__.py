"""What several interfaces render as text."""
