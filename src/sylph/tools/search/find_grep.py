"""Finding files by name and lines by pattern."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from time import time
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from sylph.core.permission.glob_pattern import glob_matcher
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.permission.protected_path import build_read_guard, find_protection, suspect_name_pattern
from sylph.core.text.formatting import count_noun, truncate_middle
from sylph.core.tool import Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files.workspace_paths import (
    assess_read,
    display_path,
    printable_name,
    resolve_folder,
    resolve_inside,
    translate_os_errors,
)
from sylph.tools.search.searcher import FileQuery, FileSearcher, LineHit

# Searchers answer in any order: so many are taken in, put in order, and then cut.
GATHERED = 5_000
WIDTH = 400
NAMED = 5

Mode = Literal["content", "files", "count"]


class FindArgs(ToolArgs, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(min_length=1, description="Glob: *.py for any folder, src/**/*.py from path on.")]
    path: Annotated[str, Meta(description="Folder to search.")] = "."
    newest: Annotated[bool, Meta(description="Last changed first, instead of by name.")] = False
    folders: Annotated[bool, Meta(description="Folders instead of files.")] = False
    larger: Annotated[int, Meta(ge=0, description="Only files over so many bytes, with their sizes.")] = 0
    hours: Annotated[float, Meta(ge=0, description="Only what changed in the last so many.")] = 0
    ignored: Annotated[bool, Meta(description="Also what ignore files leave out.")] = False
    limit: Annotated[int, Meta(ge=1, le=2_000, description="Files at most.")] = 200


class GrepArgs(ToolArgs, frozen=True, kw_only=True):
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


def build_find_tool(searcher: FileSearcher) -> Tool:
    async def run(args: FindArgs, context: ToolContext) -> ToolResult:
        place = resolve_folder(context.workspace, args.path)
        matches = glob_matcher(args.pattern)
        paths = sorted(
            await searcher.list_files(place, (lambda _: True) if args.folders else matches, ignored=args.ignored)
        )
        if args.folders:
            paths = [path for path in _parent_folders(paths) if matches(path)]
        if args.newest or args.larger or args.hours:
            paths = await asyncio.to_thread(_filter_files, place, paths, args)
        prefix = _path_prefix(context.workspace, place)
        sizes = [f"  {(place / path).stat().st_size:,} bytes" if args.larger else "" for path in paths[: args.limit]]
        end = "/" if args.folders else ""
        lines = [f"{prefix}{printable_name(path)}{end}{size}" for path, size in zip(paths, sizes, strict=False)]
        noun = "folders" if args.folders else "files"
        return _search_result(lines or [f"[no {noun}]"], _omitted_note(len(lines), len(paths), noun), searcher.note)

    return Tool(
        name="find",
        description="Find files by name; hidden ones too, ignored ones not.",
        args=FindArgs,
        run=run,
        effect="read",
        recourse="pure",
        judge=lambda args, context: assess_read(context.workspace, args.path),
    )


def build_grep_tool(searcher: FileSearcher, places: PathPolicy) -> Tool:
    async def run(args: GrepArgs, context: ToolContext) -> ToolResult:
        query = _withhold_secrets(_build_query(args, context.workspace), places)
        prefix = _path_prefix(context.workspace, query.folder)
        # Both look through the whole folder: at the same time it takes hardly longer.
        passed = asyncio.create_task(spared(query, prefix))
        try:
            if args.mode == "content":
                hits = await searcher.find_matches(query, most=GATHERED)
                lines, left = _group_lines(_first_matches(hits, args.limit), prefix), _omitted_matches(hits, args.limit)
            else:
                counts = sorted(await searcher.count_matches(query, first=args.mode == "files"))
                lines = [
                    _format_count(prefix + printable_name(path), number, args.mode)
                    for path, number in counts[: args.limit]
                ]
                left = _omitted_note(len(lines), len(counts), "files")
            return _search_result(lines or ["[no matches]"], left, await passed, searcher.note)
        finally:
            passed.cancel()

    async def spared(query: FileQuery, prefix: str) -> str:
        # Not told by what matched: whether it does would give the secret away, question by question.
        names = sorted(await searcher.list_withheld(query)) if not query.file else []
        return _withheld_note([prefix + printable_name(name) for name in names])

    return Tool(
        name="grep",
        description="Search files for a regular expression; hidden ones too, ignored and binary ones not.",
        args=GrepArgs,
        run=run,
        effect="read",
        recourse="pure",
        judge=lambda args, context: assess_read(context.workspace, args.path),
    )


def _build_query(args: GrepArgs, root: Path) -> FileQuery:
    path = resolve_inside(root, args.path)
    with translate_os_errors(args.path):
        path.stat()
    alone = path.is_file()
    return FileQuery(
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


def _withhold_secrets(query: FileQuery, places: PathPolicy) -> FileQuery:
    """In a folder, secrets are passed over; what was named itself has been judged, and asked about, by its name."""
    if query.file or find_protection(query.folder, writing=False, places=places):
        return query
    return replace(
        query,
        is_withheld=build_read_guard(query.folder, places),
        withheld_pattern=suspect_name_pattern(query.folder, places),
    )


def _withheld_note(names: list[str]) -> str:
    if not names:
        return ""
    told = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    files = f"{count_noun(len(names), 'file')} that may hold secrets {'was' if len(names) == 1 else 'were'}"
    return f"[{files} not searched: {told}; name one as path to search it]"


def _path_prefix(root: Path, place: Path) -> str:
    name = display_path(root, place)
    return "" if name == "." else f"{name}/"


def _parent_folders(paths: Iterable[str]) -> list[str]:
    """Every folder on the way to these files."""
    found = {parent for path in paths for parent in _folders_above(path)}
    return sorted(found)


def _folders_above(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _filter_files(place: Path, paths: Iterable[str], args: FindArgs) -> list[str]:
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


def _first_matches(hits: Iterable[LineHit], limit: int) -> Iterator[LineHit]:
    """The first `limit` matches by path, with their context."""
    matches = 0
    for hit in sorted(hits, key=lambda hit: hit.path):
        matches += hit.match
        if matches > limit:
            return
        yield hit


def _group_lines(hits: Iterable[LineHit], prefix: str) -> list[str]:
    """Lines under the name of their file: `12:` matches, `13-` is near, -- stands for a gap."""
    lines: list[str] = []
    ahead = LineHit("", 0, "", match=False)
    for last, hit in pairwise([ahead, *hits]):
        if hit.path != last.path:
            lines += ["", prefix + printable_name(hit.path)][not lines :]
        elif hit.line > last.line + 1 and not (hit.match and last.match):
            lines.append("--")
        lines.append(f"{hit.line}{':' if hit.match else '-'}{truncate_middle(hit.text, WIDTH)}")
    return lines


def _format_count(path: str, number: int, mode: Mode) -> str:
    return path if mode == "files" else f"{path}: {number}"


def _omitted_matches(hits: list[LineHit], limit: int) -> str:
    total = sum(hit.match for hit in hits)
    return _omitted_note(min(total, limit), total, "matches", more=total >= GATHERED)


def _omitted_note(told: int, total: int, noun: str, *, more: bool = False) -> str:
    if told == total and not more:
        return ""
    return f"[{told:,} of {'more than ' if more else ''}{total:,} {noun}; narrow the search or raise limit]"


def _search_result(lines: list[str], *notes: str) -> ToolResult:
    return ToolResult(text="\n".join([*lines, *(note for note in notes if note)]))
