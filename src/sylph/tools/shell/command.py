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

from sylph.core.command_run import CommandResult, CommandSpec, LostCommand, StopReason
from sylph.core.errors import ErrorReport, OutcomeUnknown, ToolError
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files.workspace_paths import printable_name, resolve_folder, translate_os_errors

DEFAULT = 120.0
LONGEST = 3600.0
# More than this nobody watches live; it is still kept.
LIVE = 1_000_000

RESERVED = "SYLPH_"
ENDED: dict[StopReason, str] = {
    "memory": "[ended: it used too much memory]\n",
    "cpu": "[ended: it used too much processor time]\n",
    "processes": "[ended: it had too many processes]\n",
    "stopped": "[stopped]\n",
}
# Settings of git that come in numbered pairs go all together: one half of them alone, and no git command starts.
SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|GIT_CONFIG_(COUNT|VALUE|PARAMETERS)", re.IGNORECASE
)
# Nobody is at the terminal: no colours, no pager, no editor, no prompt, and nothing lost in a buffer at a time-out.
NONINTERACTIVE_ENV = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONUNBUFFERED": "1",
}


class ShellArgs(ToolArgs, frozen=True, kw_only=True):
    command: Annotated[str, Meta(min_length=1, description="Command line.")]
    seconds: Annotated[float, Meta(gt=0, le=LONGEST, description="Time limit.")] = DEFAULT
    cwd: Annotated[str, Meta(description="Folder to run in.")] = "."
    env: Annotated[dict[str, str], Meta(description="More environment variables.")] = {}
    outside: Annotated[bool, Meta(description="Run outside of the sandbox; the user is asked.")] = False


def build_shell_tool(environ: Mapping[str, str], places: PathPolicy) -> Tool:
    """The tool; its commands get `environ` without what looks like a credential."""
    interpreter = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    basis = {**strip_credentials(environ), **NONINTERACTIVE_ENV}

    async def run(args: ShellArgs, context: ToolContext) -> ToolResult:
        order = _command_spec(interpreter, args, context, basis)
        return _command_result(await context.runner.run(order, LiveOutput(context.output).add), args, context)

    def judge(args: ShellArgs, context: ToolContext) -> CallAssessment:
        return replace(judge_command(args.command, args.cwd, context, places, args.env), outside=args.outside)

    async def recover(args: ShellArgs, context: ToolContext) -> ToolResult | None:
        ran = await context.runner.attach(LiveOutput(context.output).add)
        return None if ran is None else _command_result(ran, args, context)

    return Tool(
        name="shell",
        description="Run a command line with bash: no input, no terminal. All it started is ended when it returns.",
        args=ShellArgs,
        run=run,
        effect="write",
        risk="caution",
        recourse="by_probe",
        preview=preview_command,
        judge=judge,
        recover=recover,
        seconds=LONGEST,
    )


async def preview_command(args: ShellArgs, context: ToolContext) -> str:
    how = ", outside of the sandbox" if args.outside else ""
    return f"would run in {printable_name(str(resolve_folder(context.workspace, args.cwd)))}{how}:\n{args.command}"


def judge_command(
    command: str, cwd: str, context: ToolContext, places: PathPolicy, env: Mapping[str, str] | None = None
) -> CallAssessment:
    """What a command line would do in a folder of the workspace."""
    # Imported with the first command: reading command lines takes a while to load.
    from sylph.tools.shell.judge.command_line import judge_line

    place = Path(os.path.join(context.workspace, cwd.replace("\0", "")))  # noqa: PTH118
    return judge_line(command, cwd=place, workspace=context.workspace, places=places, env=env)


def strip_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not SECRET_NAME.search(name)}


def _command_spec(interpreter: str, args: ShellArgs, context: ToolContext, basis: Mapping[str, str]) -> CommandSpec:
    check_command(args.command, args.env)
    with translate_os_errors("The command"):
        place = resolve_folder(context.workspace, args.cwd)
    return CommandSpec(
        argv=(interpreter, "-c", args.command),
        cwd=str(place),
        env={**basis, **args.env},
        seconds=_time_limit(args, context),
        memory=context.memory,
        outside=args.outside,
    )


def check_command(command: str, env: Mapping[str, str]) -> None:
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


class LiveOutput:
    """Bytes in, text out, as far as anybody watches; a character split between two pieces stays whole."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._left = LIVE

    def add(self, data: bytes) -> None:
        if self._left > 0 and (text := self._decode(data)):
            self._show(text[: self._left])
            self._left -= len(text)


def _command_result(ran: CommandResult | LostCommand, args: ShellArgs, context: ToolContext) -> ToolResult:
    if isinstance(ran, LostCommand):
        raise OutcomeUnknown(
            f"How the command ended is not known: {ran.evidence}.",
            details={"output so far": ran.head.decode("utf-8", "replace")[-4000:]},
            next=["Find out what it did before you run it again."],
        )
    if ran.failed:
        with translate_os_errors("The command"):
            raise OSError(ran.failed, os.strerror(ran.failed))
    text = _output_text(ran)
    body = text if not text or text.endswith("\n") else f"{text}\n"
    if ran.why == "time":
        return _timeout_result(body, ran, _time_limit(args, context), most=context.seconds)
    note = "[what it left running was ended]\n" if ran.left else ""
    note += ENDED.get(ran.why, "")
    note += f"[{ran.note}]\n" if ran.note else ""
    return ToolResult(text=f"{body}{note}[{_describe_exit(ran)}]", ok=ran.exit == 0, exit=_exit_code(ran))


def _output_text(ran: CommandResult) -> str:
    if not ran.dropped:
        return (ran.head + ran.tail).decode("utf-8", "replace")
    note = f"\n[… {ran.dropped:,} bytes dropped …]\n".encode()
    return (ran.head + note + ran.tail).decode("utf-8", "replace")


def _timeout_result(body: str, ran: CommandResult, limit: float, *, most: float) -> ToolResult:
    said = f"timed out after {limit:g} s, and all it had started was ended"
    more = (f"Give it more time with seconds, at most {most:g}.",) if limit < most else ()
    return ToolResult(
        text=f"{body}[{said}; {_describe_exit(ran)}]",
        ok=False,
        exit=_exit_code(ran),
        trouble=ErrorReport(
            "timed_out",
            f"The command {said}.",
            {"seconds": f"{limit:g}"},
            (*more, "Do it in smaller parts."),
        ),
    )


def _time_limit(args: ShellArgs, context: ToolContext) -> float:
    return min(args.seconds, context.seconds)


def _exit_code(ran: CommandResult) -> int:
    """As a shell counts: 128 and the signal for what was killed."""
    return ran.exit if ran.exit >= 0 else 128 - ran.exit


def _describe_exit(ran: CommandResult) -> str:
    if ran.exit >= 0:
        return f"exit {ran.exit}"
    return f"exit {_exit_code(ran)}: killed by signal {-ran.exit} ({signal.strsignal(-ran.exit)})"
