"""Checking a file's syntax by its kind: in-process, or with the language's own program where the machine has it."""

import asyncio
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from sylph.core.command_run import LostCommand
from sylph.core.errors import ErrorReport, ToolError
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files import text_file
from sylph.tools.files.read import readonly_program
from sylph.tools.files.syntax_flaw import SyntaxFlaw
from sylph.tools.files.workspace_paths import assess_read, display_path, resolve_inside, translate_os_errors

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


class VerifyArgs(ToolArgs, frozen=True, kw_only=True):
    path: str


def build_verify_tool(environ: Mapping[str, str]) -> Tool:
    """The tool; `environ` tells where programs are."""

    def program(path: Path) -> tuple[str, ...]:
        name, *options = PROGRAMS.get(path.suffix.lower(), ("",))
        found = shutil.which(name, path=environ.get("PATH")) if name else None
        return (found, *options, str(path)) if found else ()

    async def run(args: VerifyArgs, context: ToolContext) -> ToolResult:
        path = resolve_inside(context.workspace, args.path)
        data = await asyncio.to_thread(_load_file, path, args.path)
        name = display_path(context.workspace, path)
        if known := await asyncio.to_thread(_check_in_process, path.suffix.lower(), data):
            return _flaw_result(name, *known)
        if argv := program(path):
            return _flaw_result(name, Path(argv[0]).name, await _check_by_program(argv, path, context))
        return ToolResult(text=_unchecked_note(name, path))

    def judge(args: VerifyArgs, context: ToolContext) -> CallAssessment:
        judged = assess_read(context.workspace, args.path)
        argv = program(Path(judged.reads[0])) if judged.reads else ()
        return CallAssessment("read", "safe", reads=judged.reads, commands=(" ".join(argv),) if argv else ())

    return Tool(
        name="verify_file",
        description="Check a file's syntax: Python, JSON, TOML, YAML, XML, INI, notebooks, shell, JavaScript.",
        args=VerifyArgs,
        run=run,
        effect="read",
        recourse="pure",
        judge=judge,
    )


def _load_file(path: Path, name: str) -> bytes:
    with translate_os_errors(name):
        if text_file.stat_file(path, name).st_size > LARGEST:
            raise ToolError(f"{name} is over {LARGEST:,} bytes.", kind="too_large")
        return path.read_bytes()


def _check_in_process(suffix: str, data: bytes) -> tuple[str, SyntaxFlaw | None] | None:
    """What kind it is and what is wrong with it; None for what is not checked in here."""
    from sylph.tools.files import syntax_checkers  # a parser for each kind, which only this tool needs

    if suffix not in syntax_checkers.CHECKS:
        return None
    kind, check = syntax_checkers.CHECKS[suffix]
    try:
        return kind, check(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return kind, SyntaxFlaw(f"byte {error.start} is not valid UTF-8", line)


async def _check_by_program(argv: tuple[str, ...], path: Path, context: ToolContext) -> SyntaxFlaw | None:
    ran = await readonly_program.run_readonly(argv, path, context, seconds=SECONDS, memory=context.memory)
    if isinstance(ran, LostCommand) or ran.why or ran.failed:
        raise ToolError(f"{Path(argv[0]).name} did not come to an end.", kind="not_checked")
    if ran.exit == 0:
        return None
    said = ran.head.decode("utf-8", "replace")
    at = LINE.search(said.replace(str(path), ""))
    error = SAID.search(said)
    message = error[0] if error else FIRST.sub("", said.replace(f"{path}: ", "").strip().partition("\n")[0])
    return SyntaxFlaw(message, int(at[1]) if at else 0, int(at[2] or 0) if at else 0)


def _flaw_result(name: str, kind: str, flaw: SyntaxFlaw | None) -> ToolResult:
    if flaw is None:
        return ToolResult(text=f"{name}: ok ({kind})")
    place = ":".join(str(number) for number in (flaw.line, flaw.column) if number)
    said = f"{name}:{place}: {flaw.message}" if place else f"{name}: {flaw.message}"
    details = {"kind": kind, "line": str(flaw.line), "column": str(flaw.column)}
    return ToolResult(text=f"{said} ({kind})", ok=False, trouble=ErrorReport("syntax_error", said, details))


def _unchecked_note(name: str, path: Path) -> str:
    program = PROGRAMS.get(path.suffix.lower())
    why = f"{program[0]} is not installed" if program else f"no check for {path.suffix or 'files without a suffix'}"
    return f"{name}: not checked, {why}"
