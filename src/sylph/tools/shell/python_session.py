"""A Python session for each conversation: what one call defines the next one knows, also after a restart of Sylph."""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from sylph.core.command_run import BackgroundJob, BackgroundJobs, CommandSpec, JobInput, StopReason
from sylph.core.errors import ErrorReport, OutcomeUnknown, ToolError
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files.workspace_paths import resolve_folder
from sylph.tools.shell.command import NONINTERACTIVE_ENV, strip_credentials

DEFAULT = 60.0
LONGEST = 3600.0
# Of a session that nobody uses the process ends, and its variables are lost.
IDLE = 2 * 3600.0
# The journal of a session that has printed this much is full.
FULL = 200_000_000
PIECE = 1_000_000
# Longer than the session itself needs to end code that does not stop.
SLACK = 10.0
PREFIX = "python-"
ENDED: dict[StopReason, str] = {
    "time": "ran too long",
    "memory": "used too much memory",
    "cpu": "used too much processor time",
    "processes": "had too many processes",
    "stopped": "was stopped",
}
LOADER = "import sys; exec(compile(sys.argv[1], '<python session>', 'exec'))"


class PythonArgs(ToolArgs, frozen=True, kw_only=True):
    code: Annotated[str, Meta(max_length=100_000, description="Code; the last expression's value is shown.")] = ""
    seconds: Annotated[float, Meta(gt=0, le=LONGEST, description="Time limit.")] = DEFAULT
    reset: Annotated[bool, Meta(description="Forget everything first.")] = False


class CellValue(msgspec.Struct):
    name: str
    what: str
    text: str


class CellEnd(msgspec.Struct):
    """How a cell ended."""

    state: str
    value: CellValue | None = None
    error: str = ""
    lost: bool = False
    exit: int = 0


class CellMessage(msgspec.Struct):
    id: str
    out: str = ""
    end: CellEnd | None = None


def build_python_tool(environ: Mapping[str, str]) -> Tool:
    """The tool; its interpreter gets `environ` without what looks like a credential."""
    basis = {**strip_credentials(environ), **NONINTERACTIVE_ENV}

    async def run(args: PythonArgs, context: ToolContext) -> ToolResult:
        if args.reset and (old := current_session(context.jobs)):
            await context.jobs.stop(old.id)
        if not args.code.strip():
            return _empty_result(args)
        job, note = await _open_session(context, environ, basis, fresh=args.reset)
        seconds = min(args.seconds, context.seconds)
        cell = {"id": context.call, "code": args.code, "seconds": seconds}
        follow = CellFollower(context, job.id, job.bytes)
        try:
            if not await context.jobs.send(job.id, JobInput(key=context.call, text=json.dumps(cell) + "\n")):
                raise ToolError("The Python session takes no code.", kind="session_lost", next=["Use reset=true."])
            end = await follow.wait_for_end(seconds + SLACK)
        except asyncio.CancelledError:
            await context.jobs.send(job.id, JobInput(key=f"{context.call}.stop", text=_interrupt_message(context)))
            raise
        return _cell_result(end, follow.text, note, seconds)

    return Tool(
        name="python",
        description="Run Python in this conversation's own session: variables stay, also big ones (_ and _N are values "
        "of earlier calls; print parts, not all). No input.",
        args=PythonArgs,
        run=run,
        effect="write",
        risk="caution",
        recourse="by_probe",
        preview=preview_python,
        judge=judge_python,
        recover=recover_python,
        seconds=LONGEST,
    )


def judge_python(_args: PythonArgs, _context: ToolContext) -> CallAssessment:
    return CallAssessment("write", "caution", "runs Python code", commands=("python3",))


async def preview_python(args: PythonArgs, _: ToolContext) -> str:
    forgets = "would forget all variables\n" if args.reset else ""
    return f"{forgets}would run in the Python session:\n{args.code}"


async def recover_python(args: PythonArgs, context: ToolContext) -> ToolResult | None:
    """The truth is in the journal of the session that has taken the code; if none has, it never ran."""
    job = next((job for job in python_sessions(context.jobs) if context.jobs.input_taken(job.id, context.call)), None)
    if job is None:
        return None
    follow = CellFollower(context, job.id, 0)
    seconds = min(args.seconds, context.seconds)
    end = await follow.wait_for_end(seconds + SLACK)
    if end.state == "gone":
        raise OutcomeUnknown(
            f"The Python session ended while this code ran: {end.error}. Its variables are lost.",
            details={"output so far": follow.text[-4000:]},
            next=["Find out what it did before you run it again."],
        )
    return _cell_result(end, follow.text, "", seconds)


def python_sessions(jobs: BackgroundJobs) -> list[BackgroundJob]:
    """The newest first."""
    return [job for job in reversed(jobs.all()) if job.id.startswith(PREFIX)]


def current_session(jobs: BackgroundJobs) -> BackgroundJob | None:
    return next((job for job in python_sessions(jobs)[:1] if job.state == "running" and job.hears), None)


async def _open_session(
    context: ToolContext, environ: Mapping[str, str], basis: Mapping[str, str], *, fresh: bool
) -> tuple[BackgroundJob, str]:
    """The session that runs, or a new one; and what has to be said about the one before."""
    job = current_session(context.jobs)
    if job and job.bytes > FULL:
        raise ToolError(
            "The session has printed too much.", kind="session_full", next=["Save what counts; reset=true."]
        )
    if job:
        return job, ""
    before = python_sessions(context.jobs)
    order = CommandSpec(
        argv=(find_interpreter(context.workspace, environ), "-I", "-c", LOADER, _load_program(), f"{IDLE:g}"),
        cwd=str(resolve_folder(context.workspace, ".")),
        env=basis,
        memory=context.memory,
        head=FULL + 50_000_000,
        tail=0,
        job=True,
        interactive=True,
        title="python session",
    )
    job = await context.jobs.start(f"{PREFIX}{len(before) + 1}", order)
    if job.state != "running":
        said = context.jobs.output(job.id, 0, PIECE).decode("utf-8", "replace")
        raise ToolError("Python could not be started.", kind="no_python", details={"output": said[-2000:]})
    lost = before and not fresh
    return job, f"[a new session: the one before {_end_reason(before[0])}, its variables are lost]\n" if lost else ""


def find_interpreter(workspace: Path, environ: Mapping[str, str]) -> str:
    """The workspace's own Python if it has one, else the user's."""
    own = workspace / ".venv" / "bin" / "python"
    if os.access(own, os.X_OK):
        return str(own)
    found = shutil.which("python3", path=environ.get("PATH"))
    if found is None:
        raise ToolError("There is no python3.", kind="no_python", next=["Ask the user to install it; use the shell."])
    return found


def _load_program() -> str:
    return Path(__file__).with_name("cell_runner.py").read_text()


class CellFollower:
    """One cell, as the journal of its session tells it."""

    def __init__(self, context: ToolContext, job: str, offset: int) -> None:
        self._context, self._job, self._offset = context, job, offset
        self._rest = b""
        self._said: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._said)

    async def wait_for_end(self, seconds: float) -> CellEnd:
        """How it ended. A session that does not even stop its code in time is ended."""
        jobs, deadline = self._context.jobs, asyncio.get_running_loop().time() + seconds
        while True:
            job = await jobs.wait_output(
                self._job, self._offset, max(deadline - asyncio.get_running_loop().time(), 0.0)
            )
            for line in self._read_messages():
                if line.end:
                    return line.end
                self._said.append(line.out)
                self._context.output(line.out)
            if job is None or job.state != "running":
                return CellEnd(state="gone", lost=True, error=_end_reason(job))
            if asyncio.get_running_loop().time() >= deadline:
                await jobs.stop(self._job)
                return CellEnd(state="time", lost=True)

    def _read_messages(self) -> Iterator[CellMessage]:
        while data := self._context.jobs.output(self._job, self._offset, PIECE):
            self._offset += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            said = (msgspec.json.decode(line, type=CellMessage) for line in lines if line.startswith(b"{"))
            yield from (line for line in said if line.id == self._context.call)


def _interrupt_message(context: ToolContext) -> str:
    return json.dumps({"interrupt": context.call}) + "\n"


def _empty_result(args: PythonArgs) -> ToolResult:
    if args.reset:
        return ToolResult(text="The session was ended; the next call begins a new one.")
    raise ToolError("There is no code.", kind="bad_argument", next=["Give code."])


def _cell_result(end: CellEnd, said: str, note: str, seconds: float) -> ToolResult:
    body = note + (said if not said or said.endswith("\n") else f"{said}\n")
    if end.state == "ok":
        return ToolResult(text=(body + _render_value(end.value)).rstrip("\n") or "Done.")
    kept = "Its process was ended, and all variables are lost." if end.lost else "The variables are kept."
    kind, message, next = {
        "time": ("timed_out", f"Stopped after {seconds:g} s. {kept}", "Give it more seconds, or do less at once."),
        "interrupted": ("interrupted", f"Interrupted. {kept}", ""),
        "died": (
            "session_lost",
            f"The code ended its own process with {end.exit}. {kept}",
            "Define again what you need.",
        ),
        "gone": (
            "session_lost",
            f"The session ended while the code ran: {end.error}. {kept}",
            "Do it with less memory.",
        ),
    }.get(end.state, ("exception", end.error.rpartition("\n")[2] or "It failed.", ""))
    detail = f"{end.error}\n" if end.error and end.state != "gone" else ""
    last = "" if kind == "exception" else f"[{message}]"
    trouble = ErrorReport(kind, message, {}, (next,) if next else ())
    return ToolResult(text=(body + detail + last).rstrip("\n"), ok=False, trouble=trouble)


def _render_value(value: CellValue | None) -> str:
    if value is None:
        return ""
    between = "\n" if "\n" in value.text else " "
    return f"[{value.name}: {value.what}]{between}{value.text}"


def _end_reason(job: BackgroundJob | None) -> str:
    if job is None or job.state == "lost":
        return "is lost, its runner died"
    return ENDED.get(job.why) or f"ended with {job.exit}"
