"""Names for sessions, turns, calls and questions: random where they must be unique, counted where they can be."""

import secrets

# No vowels and no look-alikes: ids are read aloud, typed and prefix-matched.
ALPHABET = "bcdfghjkmnpqrstvwxz23456789"


def new_id(length: int = 12) -> str:
    """A session id: short prefixes of it are unique in practice."""
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def turn_id(number: int) -> str:
    return f"t{number}"


def call_id(turn: str, number: int) -> str:
    """Counted, not random, so that a replay makes the same ids; every wire dialect accepts the form."""
    return f"{turn}_c{number}"


def question_id(turn: str, number: int) -> str:
    return f"{turn}_q{number}"


def input_id(number: int) -> str:
    return f"i{number}"
