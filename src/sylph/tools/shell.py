"""Running a command line in the workspace, so that its outcome is known whatever happens to Sylph."""

import codecs
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from sylph.core.errors import ToolError, Trouble, Unknown
from sylph.core.places import Places
from sylph.core.run import Lost, Order, Ran, Why
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools.workspace import folder, printable, reported

DEFAULT = 120.0
LONGEST = 3600.0
# More than this nobody watches live; it is still kept.
LIVE = 1_000_000

RESERVED = "SYLPH_"
ENDED: dict[Why, str] = {
    "memory": "[ended: it used too much memory]\n",
    "cpu": "[ended: it used too much processor time]\n",
    "processes": "[ended: it had too many processes]\n",
    "stopped": "[stopped]\n",
}
# Settings of git that come in numbered pairs go all together: one half of them alone, and no git command starts.
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|GIT_CONFIG_(COUNT|VALUE|PARAMETERS)", re.IGNORECASE)
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
    outside: Annotated[bool, Meta(description="Run outside of the sandbox; the user is asked.")] = False


def shell(environ: Mapping[str, str], places: Places) -> Tool:
    """The tool; its commands get `environ` without what looks like a credential."""
    interpreter = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    basis = {**clean(environ), **QUIET}

    async def run(args: Shell, context: Context) -> Result:
        order = _order(interpreter, args, context, basis)
        return _told(await context.runs.run(order, Live(context.output).add), args, context)

    def judge(args: Shell, context: Context) -> Judged:
        return replace(judged(args.command, args.cwd, context, places, args.env), outside=args.outside)

    async def recover(args: Shell, context: Context) -> Result | None:
        ran = await context.runs.attach(Live(context.output).add)
        return None if ran is None else _told(ran, args, context)

    return Tool(
        name="shell",
        description="Run a command line with bash: no input, no terminal. All it started is ended when it returns.",
        args=Shell,
        run=run,
        effect="write",
        risk="caution",
        recourse="by_probe",
        preview=preview,
        judge=judge,
        recover=recover,
        seconds=LONGEST,
    )


async def preview(args: Shell, context: Context) -> str:
    how = ", outside of the sandbox" if args.outside else ""
    return f"would run in {printable(str(folder(context.workspace, args.cwd)))}{how}:\n{args.command}"


def judged(command: str, cwd: str, context: Context, places: Places, env: Mapping[str, str] | None = None) -> Judged:
    """What a command line would do in a folder of the workspace."""
    # Imported with the first command: reading command lines takes a while to load.
    from sylph.tools.command.judge import judge_line

    place = Path(os.path.join(context.workspace, cwd.replace("\0", "")))  # noqa: PTH118
    return judge_line(command, cwd=place, workspace=context.workspace, places=places, env=env)


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not SECRET.search(name)}


def _order(interpreter: str, args: Shell, context: Context, basis: Mapping[str, str]) -> Order:
    check(args.command, args.env)
    with reported("The command"):
        place = folder(context.workspace, args.cwd)
    return Order(
        argv=(interpreter, "-c", args.command),
        cwd=str(place),
        env={**basis, **args.env},
        seconds=_limit(args, context),
        memory=context.memory,
        outside=args.outside,
    )


def check(command: str, env: Mapping[str, str]) -> None:
    """Refuses what no system can start, and variables that would lead whoever watches the command astray."""
    if any("\0" in text for text in (command, *env, *env.values())):
        raise ToolError("A command cannot hold a NUL byte.", kind="bad_command")
    if any("=" in name or not name for name in env):
        raise ToolError("The name of a variable is empty or holds a =.", kind="bad_command")
    if own := [name for name in env if name.upper().startswith(RESERVED)]:
        raise ToolError(
            f"{', '.join(own)}: variables that begin with {RESERVED} are Sylph's own.",
            kind="reserved_variable",
            next=["Use another name."],
        )


class Live:
    """Bytes in, text out, as far as anybody watches; a character split between two pieces stays whole."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._left = LIVE

    def add(self, data: bytes) -> None:
        if self._left > 0 and (text := self._decode(data)):
            self._show(text[: self._left])
            self._left -= len(text)


def _told(ran: Ran | Lost, args: Shell, context: Context) -> Result:
    if isinstance(ran, Lost):
        raise Unknown(
            f"How the command ended is not known: {ran.evidence}.",
            details={"output so far": ran.head.decode("utf-8", "replace")[-4000:]},
            next=["Find out what it did before you run it again."],
        )
    if ran.failed:
        with reported("The command"):
            raise OSError(ran.failed, os.strerror(ran.failed))
    text = _text(ran)
    body = text if not text or text.endswith("\n") else f"{text}\n"
    if ran.why == "time":
        return _late(body, ran, _limit(args, context), most=context.seconds)
    note = "[what it left running was ended]\n" if ran.left else ""
    note += ENDED.get(ran.why, "")
    note += f"[{ran.note}]\n" if ran.note else ""
    return Result(text=f"{body}{note}[{_fate(ran)}]", ok=ran.exit == 0, exit=_exit(ran))


def _text(ran: Ran) -> str:
    if not ran.dropped:
        return (ran.head + ran.tail).decode("utf-8", "replace")
    note = f"\n[… {ran.dropped:,} bytes dropped …]\n".encode()
    return (ran.head + note + ran.tail).decode("utf-8", "replace")


def _late(body: str, ran: Ran, limit: float, *, most: float) -> Result:
    said = f"timed out after {limit:g} s, and all it had started was ended"
    more = (f"Give it more time with seconds, at most {most:g}.",) if limit < most else ()
    return Result(
        text=f"{body}[{said}; {_fate(ran)}]",
        ok=False,
        exit=_exit(ran),
        trouble=Trouble(
            "timed_out",
            f"The command {said}.",
            {"seconds": f"{limit:g}"},
            (*more, "Do it in smaller parts."),
        ),
    )


def _limit(args: Shell, context: Context) -> float:
    return min(args.seconds, context.seconds)


def _exit(ran: Ran) -> int:
    """As a shell counts: 128 and the signal for what was killed."""
    return ran.exit if ran.exit >= 0 else 128 - ran.exit


def _fate(ran: Ran) -> str:
    if ran.exit >= 0:
        return f"exit {ran.exit}"
    return f"exit {_exit(ran)}: killed by signal {-ran.exit} ({signal.strsignal(-ran.exit)})"
