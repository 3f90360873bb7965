"""Searching with ripgrep."""

import asyncio
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from sylph.core.errors import ToolError
from sylph.tools.search.searcher import FileQuery, LineHit, PathFilter
from sylph.tools.shell.child_process import start_process

ERROR = 2
LINE = re.compile(rb"([^\0]+)\0(\d+)([:-])(.*)", re.DOTALL)
COUNT = re.compile(rb"([^\0]+)\0(\d+)")
# It writes file by file: woken for each of them, reading takes as long as searching. In a pause they gather.
SMALL, PAUSE = 16_384, 0.004
# Hidden files count as files, git's own do not; a .gitignore holds without a repository too.
COMMON = ("--no-config", "--color=never", "--no-messages", "--hidden", "--glob=!.git", "--no-require-git")


def find_ripgrep(environ: Mapping[str, str]) -> str | None:
    """The program: the one installed beside Python, else the one on the path."""
    beside = Path(sys.executable).with_name("rg")
    return str(beside) if beside.is_file() else shutil.which("rg", path=environ.get("PATH"))


class RipgrepSearcher:
    note = ""

    def __init__(self, program: str) -> None:
        self._program = program

    async def list_files(self, folder: Path, wanted: PathFilter, *, ignored: bool) -> list[str]:
        return await self._list_names(["--no-ignore"] if ignored else [], folder, wanted)

    async def list_withheld(self, query: FileQuery) -> list[str]:
        options = [*_glob_options(query), *_ignore_options(query)]
        return await self._list_names(options, query.folder, query.is_withheld, sieve=query.withheld_pattern)

    async def _list_names(self, options: list[str], folder: Path, wanted: PathFilter, *, sieve: str = "") -> list[str]:
        found: list[str] = []

        def take(record: bytes) -> bool:
            path = _decode_text(record)
            if wanted(path):
                found.append(path)
            return True

        await self._stream_records(["--files", "--null", *options], folder, b"\0", take, sieve=sieve)
        return found

    async def count_matches(self, query: FileQuery, *, first: bool) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        odd: list[bytes] = []

        def take(record: bytes) -> bool:
            if match := COUNT.fullmatch(record):
                path = _decode_text(match[1])
                if not query.is_withheld(path):
                    found.append((path, int(match[2])))
            else:
                odd.append(record)
            return True

        only = ["--max-count=1"] if first else []
        code = await self._stream_records(["--count", *only, *_query_options(query)], query.folder, b"\n", take)
        if code == ERROR and not found:
            _raise_bad_pattern(query, odd)
        return found

    async def find_matches(self, query: FileQuery, *, most: int) -> list[LineHit]:
        found: list[LineHit] = []
        odd: list[bytes] = []
        room = most

        def take(record: bytes) -> bool:
            nonlocal room
            if match := LINE.fullmatch(record):
                path = _decode_text(match[1])
                if not query.is_withheld(path):
                    found.append(LineHit(path, int(match[2]), _decode_text(match[4]).rstrip("\r"), match[3] == b":"))
                    room -= found[-1].match
            else:
                odd.append(record)
            return room > 0

        # Wider than what is shown, so that what is shown is cut in one place.
        options = ["--line-number", "--max-columns=2000", "--max-columns-preview", f"--context={query.context}"]
        code = await self._stream_records([*options, *_query_options(query)], query.folder, b"\n", take)
        if code == ERROR and not found:
            _raise_bad_pattern(query, odd)
        return found

    async def _stream_records(
        self, options: list[str], folder: Path, mark: bytes, take: Callable[[bytes], bool], *, sieve: str = ""
    ) -> int:
        """Hands over record after record, of those with `sieve` in them, until `take` has enough; the exit code."""
        carry = b""
        async with start_process(self._build_command(options, sieve), cwd=folder, env={}) as process:
            while data := await process.read_chunk():
                *records, carry = (carry + data).split(mark)
                if not all(take(record) for record in records):
                    return 0
                if len(data) < SMALL:
                    await asyncio.sleep(PAUSE)
            await process.wait_exit()
            return (await process.terminate()).code

    def _build_command(self, options: list[str], sieve: str) -> list[str]:
        command = [self._program, *COMMON, *options]
        if not sieve:
            return command
        sift = [self._program, "--no-config", "--color=never", "--null-data", "--text", "--ignore-case", "-e", sieve]
        return ["/bin/sh", "-c", f"{shlex.join(command)} | {shlex.join(sift)}"]


def _query_options(query: FileQuery) -> list[str]:
    case = ["--ignore-case"] if query.ignore_case else []
    lines = ["--multiline"] if query.multiline else []
    options = ["--null", "--with-filename", *case, *lines, *_glob_options(query), *_ignore_options(query)]
    return [*options, "--regexp", query.pattern, "--", query.file or "."]


def _ignore_options(query: FileQuery) -> list[str]:
    return ["--no-ignore"] if query.ignored else []


def _glob_options(query: FileQuery) -> list[str]:
    glob = query.glob
    if query.type:
        # Types add up: the glob has to narrow them.
        return [f"--type={query.type}", *(["--glob", glob] if glob else [])]
    if not glob:
        return []
    # A --glob brings ignored files back; a type does not, but knows only the last name of a path.
    if "/" in glob or glob.startswith("!"):
        return ["--glob", glob]
    return ["--type-add", f"wanted:{glob}", "--type", "wanted"]


def _decode_text(data: bytes) -> str:
    return data.removeprefix(b"./").decode("utf-8", "replace")


def _raise_bad_pattern(query: FileQuery, said: list[bytes]) -> None:
    text = b"\n".join(said).decode("utf-8", "replace").strip()
    if text:
        raise ToolError(f"{query.pattern!r} cannot be searched for.\n{text}", kind="bad_pattern")
