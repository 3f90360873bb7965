"""Running a command line in the workspace."""

import asyncio
import codecs
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from typing import Annotated

from msgspec import Meta

from sylph.core.errors import ToolError, Trouble
from sylph.core.tool import Args, Context, Result, Tool
from sylph.tools.kept import Kept
from sylph.tools.process import Ended, Process, start
from sylph.tools.workspace import folder, reported, shown

DEFAULT = 120.0
LONGEST = 3600.0
# More than this nobody watches live; it is still kept.
LIVE = 1_000_000

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
# Nobody is at the terminal: no colours, no pager, no editor, no prompt, and nothing lost in a buffer at a time-out.
QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONUNBUFFERED": "1",
}


class Shell(Args, frozen=True, kw_only=True):
    command: Annotated[str, Meta(min_length=1, description="Command line.")]
    seconds: Annotated[float, Meta(gt=0, le=LONGEST, description="Time limit.")] = DEFAULT
    cwd: Annotated[str, Meta(description="Folder to run in.")] = "."
    env: Annotated[dict[str, str], Meta(description="More environment variables.")] = {}


def shell(environ: Mapping[str, str]) -> Tool:
    """The tool; its commands get `environ` without what looks like a credential."""
    interpreter = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    basis = {**clean(environ), **QUIET}

    async def run(args: Shell, context: Context) -> Result:
        with reported("The command"):
            process = _start(interpreter, args, context, basis)
        return await _follow(process, args, context)

    return Tool(
        name="shell",
        description="Run a command line with bash: no input, no terminal. All it started is ended when it returns.",
        args=Shell,
        run=run,
        effect="write",
        risk="caution",
        recourse="unknowable",
        preview=preview,
        seconds=LONGEST,
    )


async def preview(args: Shell, context: Context) -> str:
    return f"would run in {shown(context.workspace, folder(context.workspace, args.cwd))}:\n{args.command}"


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not SECRET.search(name)}


def _start(interpreter: str, args: Shell, context: Context, basis: Mapping[str, str]) -> Process:
    if any("\0" in text for text in (args.command, *args.env, *args.env.values())):
        raise ToolError("A command cannot hold a NUL byte.", kind="bad_command")
    if any("=" in name or not name for name in args.env):
        raise ToolError("The name of a variable is empty or holds a =.", kind="bad_command")
    place = folder(context.workspace, args.cwd)
    return start([interpreter, "-c", args.command], cwd=place, env={**basis, **args.env})


class Output:
    """Bytes in, text out: shown live as far as anybody watches, kept as far as memory allows."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._live = LIVE
        self.kept = Kept()

    def add(self, data: bytes, *, final: bool = False) -> None:
        text = self._decode(data, final)
        if not text:
            return
        self.kept.add(text)
        if self._live > 0:
            self._show(text)
            self._live -= len(text)


async def _follow(process: Process, args: Shell, context: Context) -> Result:
    limit = min(args.seconds, context.seconds)
    output, late = Output(context.output), False
    async with process:
        try:
            async with asyncio.timeout(limit):
                while data := await process.piece():
                    output.add(data)
                await process.done()
        except TimeoutError:
            late = True
        ended = await process.end()
    output.add(ended.rest, final=True)
    text = output.kept.text()
    body = text if not text or text.endswith("\n") else f"{text}\n"
    return _late(body, ended, limit, most=context.seconds) if late else _finished(body, ended)


def _finished(body: str, ended: Ended) -> Result:
    note = "[what it left running was ended]\n" if ended.left else ""
    return Result(text=f"{body}{note}[{_fate(ended)}]", ok=ended.code == 0, exit=_exit(ended))


def _late(body: str, ended: Ended, limit: float, *, most: float) -> Result:
    said = f"timed out after {limit:g} s, and all it had started was ended"
    more = (f"Give it more time with seconds, at most {most:g}.",) if limit < most else ()
    return Result(
        text=f"{body}[{said}; {_fate(ended)}]",
        ok=False,
        exit=_exit(ended),
        trouble=Trouble(
            "timed_out",
            f"The command {said}.",
            {"seconds": f"{limit:g}"},
            (*more, "Do it in smaller parts."),
        ),
    )


def _exit(ended: Ended) -> int:
    """As a shell counts: 128 and the signal for what was killed."""
    return ended.code if ended.code >= 0 else 128 - ended.code


def _fate(ended: Ended) -> str:
    if ended.code >= 0:
        return f"exit {ended.code}"
    return f"exit {_exit(ended)}: killed by signal {-ended.code} ({signal.strsignal(-ended.code)})"
