"""Everybody who listens to events: who is told what, and how that looks on the wire."""
