"""What every request has to pass before any route sees it, one question per file."""
