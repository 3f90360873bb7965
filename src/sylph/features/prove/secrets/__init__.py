"""Canaries that must be found nowhere at rest."""
