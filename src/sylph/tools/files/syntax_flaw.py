"""What is wrong with the syntax of a file."""

from typing import NamedTuple


class SyntaxFlaw(NamedTuple):
    """The first thing that is wrong, and where; 0 is nowhere in particular."""

    message: str
    line: int = 0
    column: int = 0
