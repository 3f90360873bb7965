"""How full a model's window is, and when that is worth a word."""

from typing import Literal

WindowLevel = Literal["", "advisory", "warning", "critical"]
# Shares of the window in percent.
LEVEL_THRESHOLDS: tuple[tuple[int, WindowLevel], ...] = ((90, "critical"), (80, "warning"), (70, "advisory"))
LEVEL_MESSAGES: dict[WindowLevel, str] = {
    "advisory": "the conversation fills its window",
    "warning": "older parts are about to be summarised",
    "critical": "hardly anything fits in any more: summarise, or begin a new session",
}


def window_percent(used: int, window: int) -> int:
    """0 where the window is not known: then nothing can be said."""
    return used * 100 // window if window > 0 else 0


def window_level(used: int, window: int) -> WindowLevel:
    full = window_percent(used, window)
    for least, name in LEVEL_THRESHOLDS:
        if full >= least:
            return name
    return ""


def level_rank(name: WindowLevel) -> int:
    return ("", "advisory", "warning", "critical").index(name)
