"""Doors: something outside becomes a command, an event becomes something outside."""
