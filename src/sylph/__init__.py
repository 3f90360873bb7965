"""Sylph: a self-hosted agent runtime in which a session is an append-only log of events."""

__version__ = "0.1.0"
