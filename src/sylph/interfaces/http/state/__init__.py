"""What every route is handed, and what that remembers between requests."""
