"""How full a model's window is, and when that is worth a word."""

from typing import Literal

Level = Literal["", "advisory", "warning", "critical"]
# Shares of the window in percent.
LEVELS: tuple[tuple[int, Level], ...] = ((90, "critical"), (80, "warning"), (70, "advisory"))
SAID: dict[Level, str] = {
    "advisory": "the conversation fills its window",
    "warning": "older parts are about to be summarised",
    "critical": "hardly anything fits in any more: summarise, or begin a new session",
}


def percent(used: int, window: int) -> int:
    """0 where the window is not known: then nothing can be said."""
    return used * 100 // window if window > 0 else 0


def level(used: int, window: int) -> Level:
    full = percent(used, window)
    for least, name in LEVELS:
        if full >= least:
            return name
    return ""


def rank(name: Level) -> int:
    return ("", "advisory", "warning", "critical").index(name)
