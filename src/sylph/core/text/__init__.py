"""Small functions over text that every room uses."""
