"""What somebody probably meant."""

import difflib
from collections.abc import Iterable


def nearest_word(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known word that looks most like `word`; empty where none does."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return found[0] if found else ""


# Other programs' words for the same.
SYNONYMS = {
    "kill": "stop",
    "end": "stop",
    "cancel": "stop",
    "logs": "output",
    "log": "output",
    "ls": "list",
    "rm": "remove",
    "del": "delete",
    "delete": "remove",
    "remove": "delete",
    "uninstall": "remove",
    "pull": "install",
    "mv": "rename",
    "cat": "show",
    "get": "show",
}


def suggest_word(word: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known word; empty where there is none."""
    known = list(known)
    same = SYNONYMS.get(word, "")
    near = same if same in known else nearest_word(word, known)
    return f" Did you mean {near!r}?" if near else ""
