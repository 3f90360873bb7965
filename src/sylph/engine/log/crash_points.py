"""Boundaries that a crash must not blur, announced as they are crossed, so that a proof can kill the process there."""

from collections.abc import Callable

CrashPointHook = Callable[[str], None]
"""Hears the name of a boundary at the moment it is crossed."""


def ignore_crash_point(_: str) -> None:
    """Nobody listens."""
