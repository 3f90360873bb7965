"""Sets of names, written as one line of text."""


def name_set(text: str) -> frozenset[str]:
    return frozenset(text.split())
