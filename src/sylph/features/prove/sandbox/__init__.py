"""Attempts to escape from the sandbox."""
