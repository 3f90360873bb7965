"""The seam between the search tools and what does the searching."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

Wanted = Callable[[str], bool]


class Query(Struct, frozen=True, kw_only=True):
    """What to look for in `folder`, or in one `file` of it. Paths and globs are relative to the folder."""

    pattern: str
    folder: Path
    file: str = ""
    glob: str = ""
    type: str = ""
    multiline: bool = False
    ignore_case: bool = False
    ignored: bool = False
    context: int = 0
    sparing: Wanted = lambda _: False
    """Files that are not looked into, whatever they hold."""
    suspects: str = ""
    """A pattern in the paths of all these files, to sift by; empty where there is none."""


class Hit(NamedTuple):
    """A line that matches, or one near it."""

    path: str
    line: int
    text: str
    match: bool


class Searcher(Protocol):
    """Answers may be in any order of files; a pattern that cannot be read raises ToolError."""

    @property
    def note(self) -> str:
        """What the model should know about these answers; mostly nothing."""
        ...

    async def files(self, folder: Path, wanted: Wanted, *, ignored: bool) -> list[str]:
        """The files that are `wanted`."""
        ...

    async def spared(self, query: Query) -> list[str]:
        """The files that the query would look into, were it not sparing them."""
        ...

    async def counts(self, query: Query, *, first: bool) -> list[tuple[str, int]]:
        """The files with matches and how many; `first` stops at the first match of each."""
        ...

    async def hits(self, query: Query, *, most: int) -> list[Hit]:
        """The lines that match, with the context asked for; it may stop after `most` matches."""
        ...
