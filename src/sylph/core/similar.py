"""What somebody probably meant."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known word that looks most like `word`; empty where none does."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return found[0] if found else ""


def guess(word: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known word; empty where there is none."""
    near = nearest(word, known)
    return f" Did you mean {near!r}?" if near else ""
