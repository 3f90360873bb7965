"""Streams of bytes, read into events and replies."""
