"""Checking a file's syntax by its kind: in-process, or with the language's own program where the machine has it."""

import asyncio
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from sylph.core.errors import ToolError, Trouble
from sylph.core.run import Lost
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools import document, reader
from sylph.tools.flaw import Flaw
from sylph.tools.workspace import inside, looks, reported, shown

LARGEST = 10_000_000
SECONDS = 30.0
# Programs that only parse: what follows them is the file.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    ".sh": ("bash", "-n"),
    ".bash": ("bash", "-n"),
    ".js": ("node", "--check"),
    ".mjs": ("node", "--check"),
    ".cjs": ("node", "--check"),
}
LINE = re.compile(r"(?:line |:)(\d+)(?::(\d+))?")
FIRST = re.compile(r"^line \d+: ")
SAID = re.compile(r"^\S*Error: .*", re.MULTILINE)


class Verify(Args, frozen=True, kw_only=True):
    path: str


def verify(environ: Mapping[str, str]) -> Tool:
    """The tool; `environ` tells where programs are."""

    def program(path: Path) -> tuple[str, ...]:
        name, *options = PROGRAMS.get(path.suffix.lower(), ("",))
        found = shutil.which(name, path=environ.get("PATH")) if name else None
        return (found, *options, str(path)) if found else ()

    async def run(args: Verify, context: Context) -> Result:
        path = inside(context.workspace, args.path)
        data = await asyncio.to_thread(_load, path, args.path)
        name = shown(context.workspace, path)
        if known := await asyncio.to_thread(_checked, path.suffix.lower(), data):
            return _told(name, *known)
        if argv := program(path):
            return _told(name, Path(argv[0]).name, await _asked(argv, path, context))
        return Result(text=_unchecked(name, path))

    def judge(args: Verify, context: Context) -> Judged:
        judged = looks(context.workspace, args.path)
        argv = program(Path(judged.reads[0])) if judged.reads else ()
        return Judged("read", "safe", reads=judged.reads, commands=(" ".join(argv),) if argv else ())

    return Tool(
        name="verify_file",
        description="Check a file's syntax: Python, JSON, TOML, YAML, XML, INI, notebooks, shell, JavaScript.",
        args=Verify,
        run=run,
        effect="read",
        recourse="pure",
        judge=judge,
    )


def _load(path: Path, name: str) -> bytes:
    with reported(name):
        if document.stat(path, name).st_size > LARGEST:
            raise ToolError(f"{name} is over {LARGEST:,} bytes.", kind="too_large")
        return path.read_bytes()


def _checked(suffix: str, data: bytes) -> tuple[str, Flaw | None] | None:
    """What kind it is and what is wrong with it; None for what is not checked in here."""
    from sylph.tools import syntax  # a parser for each kind, which only this tool needs

    if suffix not in syntax.CHECKS:
        return None
    kind, check = syntax.CHECKS[suffix]
    try:
        return kind, check(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return kind, Flaw(f"byte {error.start} is not valid UTF-8", line)


async def _asked(argv: tuple[str, ...], path: Path, context: Context) -> Flaw | None:
    ran = await reader.look(argv, path, context, seconds=SECONDS, memory=context.memory)
    if isinstance(ran, Lost) or ran.why or ran.failed:
        raise ToolError(f"{Path(argv[0]).name} did not come to an end.", kind="not_checked")
    if ran.exit == 0:
        return None
    said = ran.head.decode("utf-8", "replace")
    at = LINE.search(said.replace(str(path), ""))
    error = SAID.search(said)
    message = error[0] if error else FIRST.sub("", said.replace(f"{path}: ", "").strip().partition("\n")[0])
    return Flaw(message, int(at[1]) if at else 0, int(at[2] or 0) if at else 0)


def _told(name: str, kind: str, flaw: Flaw | None) -> Result:
    if flaw is None:
        return Result(text=f"{name}: ok ({kind})")
    place = ":".join(str(number) for number in (flaw.line, flaw.column) if number)
    said = f"{name}:{place}: {flaw.message}" if place else f"{name}: {flaw.message}"
    details = {"kind": kind, "line": str(flaw.line), "column": str(flaw.column)}
    return Result(text=f"{said} ({kind})", ok=False, trouble=Trouble("syntax_error", said, details))


def _unchecked(name: str, path: Path) -> str:
    program = PROGRAMS.get(path.suffix.lower())
    why = f"{program[0]} is not installed" if program else f"no check for {path.suffix or 'files without a suffix'}"
    return f"{name}: not checked, {why}"
