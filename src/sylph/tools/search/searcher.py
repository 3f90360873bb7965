"""The seam between the search tools and what does the searching."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

PathFilter = Callable[[str], bool]


class FileQuery(Struct, frozen=True, kw_only=True):
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
    is_withheld: PathFilter = lambda _: False
    """Files that are not looked into, whatever they hold."""
    withheld_pattern: str = ""
    """A pattern in the paths of all these files, to sift by; empty where there is none."""


class LineHit(NamedTuple):
    """A line that matches, or one near it."""

    path: str
    line: int
    text: str
    match: bool


class FileSearcher(Protocol):
    """Answers may be in any order of files; a pattern that cannot be read raises ToolError."""

    @property
    def note(self) -> str:
        """What the model should know about these answers; mostly nothing."""
        ...

    async def list_files(self, folder: Path, wanted: PathFilter, *, ignored: bool) -> list[str]:
        """The files that are `wanted`."""
        ...

    async def list_withheld(self, query: FileQuery) -> list[str]:
        """The files that the query would look into, were it not sparing them."""
        ...

    async def count_matches(self, query: FileQuery, *, first: bool) -> list[tuple[str, int]]:
        """The files with matches and how many; `first` stops at the first match of each."""
        ...

    async def find_matches(self, query: FileQuery, *, most: int) -> list[LineHit]:
        """The lines that match, with the context asked for; it may stop after `most` matches."""
        ...
