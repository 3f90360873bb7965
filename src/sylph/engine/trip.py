"""Boundaries that a crash must not blur, announced as they are crossed, so that a proof can kill the process there."""

from collections.abc import Callable

Trip = Callable[[str], None]
"""Hears the name of a boundary at the moment it is crossed."""


def untripped(_: str) -> None:
    """Nobody listens."""
