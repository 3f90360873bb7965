"""Cutting text down to what is worth showing, honestly."""

ELLIPSIS = " […] "


def truncate_middle(text: str, limit: int) -> str:
    """The head and the tail of `text`: `limit` characters at most."""
    if len(text) <= limit:
        return text
    # Commands stand at the start and errors at the end, so the middle goes.
    half = max((limit - len(ELLIPSIS)) // 2, 0)
    return text[:half] + ELLIPSIS + text[len(text) - half :]


def first_line(text: str, limit: int = 72) -> str:
    """A one-line stand-in for `text`, for titles and tables."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def strip_full_stop(text: str) -> str:
    """Without its full stop, so that the sentence can go on."""
    return text.removesuffix(".")


def end_sentence(text: str) -> str:
    """With a full stop, unless it ends in a mark of its own."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def count_noun(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `1,234 events`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
