"""Sets of names, written as one line of text."""


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())
