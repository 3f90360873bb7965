"""HTTP for every part that needs it, and where it may lead."""
