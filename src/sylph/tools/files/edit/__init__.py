"""Edits and patches."""
