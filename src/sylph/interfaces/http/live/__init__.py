"""Telling clients what happens, while it happens."""
