"""Finding files by name and lines by pattern."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from time import time
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from sylph.core.globs import matcher
from sylph.core.places import Places
from sylph.core.protected import guarded, suspects, unread
from sylph.core.text import count, trim
from sylph.core.tool import Args, Context, Result, Tool
from sylph.tools.searcher import Hit, Query, Searcher
from sylph.tools.workspace import folder, inside, looks, printable, reported, shown

# Searchers answer in any order: so many are taken in, put in order, and then cut.
GATHERED = 5_000
WIDTH = 400
NAMED = 5

Mode = Literal["content", "files", "count"]


class Find(Args, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(min_length=1, description="Glob: *.py for any folder, src/**/*.py from path on.")]
    path: Annotated[str, Meta(description="Folder to search.")] = "."
    newest: Annotated[bool, Meta(description="Last changed first, instead of by name.")] = False
    folders: Annotated[bool, Meta(description="Folders instead of files.")] = False
    larger: Annotated[int, Meta(ge=0, description="Only files over so many bytes, with their sizes.")] = 0
    hours: Annotated[float, Meta(ge=0, description="Only what changed in the last so many.")] = 0
    ignored: Annotated[bool, Meta(description="Also what ignore files leave out.")] = False
    limit: Annotated[int, Meta(ge=1, le=2_000, description="Files at most.")] = 200


class Grep(Args, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(min_length=1, description="Regular expression.")]
    path: Annotated[str, Meta(description="Folder or file to search.")] = "."
    glob: Annotated[str, Meta(description="Only files that match, like *.py.")] = ""
    type: Annotated[str, Meta(description="Only files of a language, like py or rust.")] = ""
    ignore_case: bool = False
    multiline: Annotated[bool, Meta(description="Matches may span lines.")] = False
    context: Annotated[int, Meta(ge=0, le=20, description="Lines to show around a match.")] = 0
    mode: Annotated[Mode, Meta(description="Lines, names of files, or matching lines per file.")] = "content"
    ignored: Annotated[bool, Meta(description="Also what ignore files leave out.")] = False
    limit: Annotated[int, Meta(ge=1, le=2_000, description="Matches or files at most.")] = 100


def find(searcher: Searcher) -> Tool:
    async def run(args: Find, context: Context) -> Result:
        place = folder(context.workspace, args.path)
        matches = matcher(args.pattern)
        paths = sorted(await searcher.files(place, (lambda _: True) if args.folders else matches, ignored=args.ignored))
        if args.folders:
            paths = [path for path in _folders(paths) if matches(path)]
        if args.newest or args.larger or args.hours:
            paths = await asyncio.to_thread(_sifted, place, paths, args)
        prefix = _prefix(context.workspace, place)
        sizes = [f"  {(place / path).stat().st_size:,} bytes" if args.larger else "" for path in paths[: args.limit]]
        end = "/" if args.folders else ""
        lines = [f"{prefix}{printable(path)}{end}{size}" for path, size in zip(paths, sizes, strict=False)]
        noun = "folders" if args.folders else "files"
        return _told(lines or [f"[no {noun}]"], _left(len(lines), len(paths), noun), searcher.note)

    return Tool(
        name="find",
        description="Find files by name; hidden ones too, ignored ones not.",
        args=Find,
        run=run,
        effect="read",
        recourse="pure",
        judge=lambda args, context: looks(context.workspace, args.path),
    )


def grep(searcher: Searcher, places: Places) -> Tool:
    async def run(args: Grep, context: Context) -> Result:
        query = _sparing(_query(args, context.workspace), places)
        prefix = _prefix(context.workspace, query.folder)
        # Both look through the whole folder: at the same time it takes hardly longer.
        passed = asyncio.create_task(spared(query, prefix))
        try:
            if args.mode == "content":
                hits = await searcher.hits(query, most=GATHERED)
                lines, left = _grouped(_first(hits, args.limit), prefix), _cut(hits, args.limit)
            else:
                counts = sorted(await searcher.counts(query, first=args.mode == "files"))
                lines = [_counted(prefix + printable(path), number, args.mode) for path, number in counts[: args.limit]]
                left = _left(len(lines), len(counts), "files")
            return _told(lines or ["[no matches]"], left, await passed, searcher.note)
        finally:
            passed.cancel()

    async def spared(query: Query, prefix: str) -> str:
        # Not told by what matched: whether it does would give the secret away, question by question.
        names = sorted(await searcher.spared(query)) if not query.file else []
        return _unsearched([prefix + printable(name) for name in names])

    return Tool(
        name="grep",
        description="Search files for a regular expression; hidden ones too, ignored and binary ones not.",
        args=Grep,
        run=run,
        effect="read",
        recourse="pure",
        judge=lambda args, context: looks(context.workspace, args.path),
    )


def _query(args: Grep, root: Path) -> Query:
    path = inside(root, args.path)
    with reported(args.path):
        path.stat()
    alone = path.is_file()
    return Query(
        pattern=args.pattern,
        folder=path.parent if alone else path,
        file=path.name if alone else "",
        glob=args.glob,
        type=args.type,
        multiline=args.multiline,
        ignore_case=args.ignore_case,
        ignored=args.ignored,
        context=args.context,
    )


def _sparing(query: Query, places: Places) -> Query:
    """In a folder, secrets are passed over; what was named itself has been judged, and asked about, by its name."""
    if query.file or guarded(query.folder, writing=False, places=places):
        return query
    return replace(query, sparing=unread(query.folder, places), suspects=suspects(query.folder, places))


def _unsearched(names: list[str]) -> str:
    if not names:
        return ""
    told = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    files = f"{count(len(names), 'file')} that may hold secrets {'was' if len(names) == 1 else 'were'}"
    return f"[{files} not searched: {told}; name one as path to search it]"


def _prefix(root: Path, place: Path) -> str:
    name = shown(root, place)
    return "" if name == "." else f"{name}/"


def _folders(paths: Iterable[str]) -> list[str]:
    """Every folder on the way to these files."""
    found = {parent for path in paths for parent in _above(path)}
    return sorted(found)


def _above(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _sifted(place: Path, paths: Iterable[str], args: Find) -> list[str]:
    """Those that are large and new enough; what has gone meanwhile is left out."""
    oldest = time() - args.hours * 3600 if args.hours else 0.0
    kept: list[tuple[float, str]] = []
    for path in paths:
        try:
            found = (place / path).stat()
        except OSError:
            continue
        if (found.st_size > args.larger or not args.larger) and found.st_mtime >= oldest:
            kept.append((-found.st_mtime, path))
    return [path for _, path in (sorted(kept) if args.newest else kept)]


def _first(hits: Iterable[Hit], limit: int) -> Iterator[Hit]:
    """The first `limit` matches by path, with their context."""
    matches = 0
    for hit in sorted(hits, key=lambda hit: hit.path):
        matches += hit.match
        if matches > limit:
            return
        yield hit


def _grouped(hits: Iterable[Hit], prefix: str) -> list[str]:
    """Lines under the name of their file: `12:` matches, `13-` is near, -- stands for a gap."""
    lines: list[str] = []
    ahead = Hit("", 0, "", match=False)
    for last, hit in pairwise([ahead, *hits]):
        if hit.path != last.path:
            lines += ["", prefix + printable(hit.path)][not lines :]
        elif hit.line > last.line + 1 and not (hit.match and last.match):
            lines.append("--")
        lines.append(f"{hit.line}{':' if hit.match else '-'}{trim(hit.text, WIDTH)}")
    return lines


def _counted(path: str, number: int, mode: Mode) -> str:
    return path if mode == "files" else f"{path}: {number}"


def _cut(hits: list[Hit], limit: int) -> str:
    total = sum(hit.match for hit in hits)
    return _left(min(total, limit), total, "matches", more=total >= GATHERED)


def _left(told: int, total: int, noun: str, *, more: bool = False) -> str:
    if told == total and not more:
        return ""
    return f"[{told:,} of {'more than ' if more else ''}{total:,} {noun}; narrow the search or raise limit]"


def _told(lines: list[str], *notes: str) -> Result:
    return Result(text="\n".join([*lines, *(note for note in notes if note)]))
