"""Searching in plain Python, where ripgrep is not to be had. It does not read ignore files."""

import asyncio
import os
import re
from collections import deque
from collections.abc import Iterator
from itertools import tee
from pathlib import Path

from sylph.core.errors import ToolError
from sylph.core.permission.glob_pattern import glob_matcher
from sylph.tools.files.text_file import SAMPLE, is_binary
from sylph.tools.search.searcher import FileQuery, LineHit, PathFilter

# The few that are asked for most; ripgrep knows many more.
TYPES = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,h}",
    "css": "*.{css,scss}",
    "go": "*.go",
    "html": "*.{html,htm}",
    "java": "*.java",
    "js": "*.{js,jsx,mjs,cjs}",
    "json": "*.json",
    "md": "*.{md,markdown}",
    "py": "*.{py,pyi}",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh}",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,mts,cts}",
    "yaml": "*.{yaml,yml}",
}
SKIPPED = frozenset({"node_modules", "__pycache__", ".venv", "venv", ".tox", ".cache", ".mypy_cache", ".ruff_cache"})


class PythonSearcher:
    note = "[ripgrep is not installed: ignore files were not read, only well-known folders left out]"

    async def list_files(self, folder: Path, wanted: PathFilter, *, ignored: bool) -> list[str]:
        return await asyncio.to_thread(lambda: [path for path in _walk_files(folder, ignored=ignored) if wanted(path)])

    async def list_withheld(self, query: FileQuery) -> list[str]:
        return await asyncio.to_thread(lambda: [path for path in _candidate_paths(query) if query.is_withheld(path)])

    async def count_matches(self, query: FileQuery, *, first: bool) -> list[tuple[str, int]]:
        return await asyncio.to_thread(_count_matches, query, first=first)

    async def find_matches(self, query: FileQuery, *, most: int) -> list[LineHit]:
        return await asyncio.to_thread(_find_matches, query, most)


def _walk_files(folder: Path, *, ignored: bool) -> Iterator[str]:
    left_out = {".git"} if ignored else SKIPPED | {".git"}
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in left_out)
        for name in sorted(files):
            path = Path(place, name)
            if not path.is_symlink():
                yield path.relative_to(folder).as_posix()


def _count_matches(query: FileQuery, *, first: bool) -> list[tuple[str, int]]:
    wanted = _compile_pattern(query)
    found: list[tuple[str, int]] = []
    for path in _searched_paths(query):
        matching = sum(
            hit.match for hit in _matches_with_context(path, _read_lines(query.folder / path), wanted, query)
        )
        if matching:
            found.append((path, 1 if first else matching))
    return found


def _find_matches(query: FileQuery, most: int) -> list[LineHit]:
    wanted = _compile_pattern(query)
    found: list[LineHit] = []
    for path in _searched_paths(query):
        found += _matches_with_context(path, _read_lines(query.folder / path), wanted, query)
        if sum(hit.match for hit in found) >= most:
            break
    return found


def _matches_with_context(
    path: str, lines: Iterator[str], wanted: re.Pattern[str], query: FileQuery
) -> Iterator[LineHit]:
    """The lines that match, with lines of context on both sides, each once and in order."""
    before: deque[LineHit] = deque(maxlen=query.context)
    after = 0
    spanned = frozenset[int]()
    if query.multiline:
        lines, whole = tee(lines)
        spanned = _spanned_lines("\n".join(whole), wanted)
    for number, line in enumerate(lines, 1):
        matches = number in spanned if query.multiline else wanted.search(line) is not None
        hit = LineHit(path, number, line, matches)
        if hit.match:
            yield from before
            before.clear()
            after = query.context
            yield hit
        elif after:
            after -= 1
            yield hit
        else:
            before.append(hit)


def _spanned_lines(text: str, wanted: re.Pattern[str]) -> frozenset[int]:
    """The lines that a match touches."""
    found: set[int] = set()
    for match in wanted.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        found.update(range(first, first + match[0].rstrip("\n").count("\n") + 1))
    return frozenset(found)


def _compile_pattern(query: FileQuery) -> re.Pattern[str]:
    try:
        case = re.IGNORECASE if query.ignore_case else re.NOFLAG
        return re.compile(query.pattern, case | (re.MULTILINE if query.multiline else re.NOFLAG))
    except re.error as error:
        raise ToolError(f"{query.pattern!r} cannot be searched for: {error}.", kind="bad_pattern") from error


def _searched_paths(query: FileQuery) -> Iterator[str]:
    return (path for path in _candidate_paths(query) if not query.is_withheld(path))


def _candidate_paths(query: FileQuery) -> Iterator[str]:
    if query.file:
        return iter([query.file])
    flip = query.glob.startswith("!")
    wanted = glob_matcher(query.glob.removeprefix("!") or "*")
    typed = glob_matcher(_type_globs(query.type))
    return (path for path in _walk_files(query.folder, ignored=query.ignored) if wanted(path) != flip and typed(path))


def _type_globs(type: str) -> str:
    if type and type not in TYPES:
        known = ", ".join(TYPES)
        raise ToolError(f"No type {type!r} is known here.", kind="bad_pattern", next=[f"Known: {known}.", "Use glob."])
    return TYPES.get(type, "*")


def _read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file; none of a binary one, or of one that cannot be opened."""
    try:
        with path.open("rb") as file:
            if is_binary(file.read(SAMPLE)):
                return
            file.seek(0)
            yield from (line.rstrip(b"\r\n").decode("utf-8", "replace") for line in file)
    except OSError:
        return
