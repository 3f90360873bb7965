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

from sylph.core.errors import ToolError, Trouble, Unknown
from sylph.core.run import Input, Job, Jobs, Order, Why
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools.shell import QUIET, clean
from sylph.tools.workspace import folder

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
ENDED: dict[Why, str] = {
    "time": "ran too long",
    "memory": "used too much memory",
    "cpu": "used too much processor time",
    "processes": "had too many processes",
    "stopped": "was stopped",
}
LOADER = "import sys; exec(compile(sys.argv[1], '<python session>', 'exec'))"


class Python(Args, frozen=True, kw_only=True):
    code: Annotated[str, Meta(max_length=100_000, description="Code; the last expression's value is shown.")] = ""
    seconds: Annotated[float, Meta(gt=0, le=LONGEST, description="Time limit.")] = DEFAULT
    reset: Annotated[bool, Meta(description="Forget everything first.")] = False


class Value(msgspec.Struct):
    name: str
    what: str
    text: str


class End(msgspec.Struct):
    """How a cell ended."""

    state: str
    value: Value | None = None
    error: str = ""
    lost: bool = False
    exit: int = 0


class Line(msgspec.Struct):
    id: str
    out: str = ""
    end: End | None = None


def python(environ: Mapping[str, str]) -> Tool:
    """The tool; its interpreter gets `environ` without what looks like a credential."""
    basis = {**clean(environ), **QUIET}

    async def run(args: Python, context: Context) -> Result:
        if args.reset and (old := current(context.jobs)):
            await context.jobs.stop(old.id)
        if not args.code.strip():
            return _empty(args)
        job, note = await _session(context, environ, basis, fresh=args.reset)
        seconds = min(args.seconds, context.seconds)
        cell = {"id": context.call, "code": args.code, "seconds": seconds}
        follow = Follow(context, job.id, job.bytes)
        try:
            if not await context.jobs.send(job.id, Input(key=context.call, text=json.dumps(cell) + "\n")):
                raise ToolError("The Python session takes no code.", kind="session_lost", next=["Use reset=true."])
            end = await follow.until(seconds + SLACK)
        except asyncio.CancelledError:
            await context.jobs.send(job.id, Input(key=f"{context.call}.stop", text=_interrupt(context)))
            raise
        return _told(end, follow.text, note, seconds)

    return Tool(
        name="python",
        description="Run Python in this conversation's own session: variables stay, also big ones (_ and _N are values "
        "of earlier calls; print parts, not all). No input.",
        args=Python,
        run=run,
        effect="write",
        risk="caution",
        recourse="by_probe",
        preview=preview,
        judge=judge,
        recover=recover,
        seconds=LONGEST,
    )


def judge(_args: Python, _context: Context) -> Judged:
    return Judged("write", "caution", "runs Python code", commands=("python3",))


async def preview(args: Python, _: Context) -> str:
    forgets = "would forget all variables\n" if args.reset else ""
    return f"{forgets}would run in the Python session:\n{args.code}"


async def recover(args: Python, context: Context) -> Result | None:
    """The truth is in the journal of the session that has taken the code; if none has, it never ran."""
    job = next((job for job in sessions(context.jobs) if context.jobs.taken(job.id, context.call)), None)
    if job is None:
        return None
    follow = Follow(context, job.id, 0)
    seconds = min(args.seconds, context.seconds)
    end = await follow.until(seconds + SLACK)
    if end.state == "gone":
        raise Unknown(
            f"The Python session ended while this code ran: {end.error}. Its variables are lost.",
            details={"output so far": follow.text[-4000:]},
            next=["Find out what it did before you run it again."],
        )
    return _told(end, follow.text, "", seconds)


def sessions(jobs: Jobs) -> list[Job]:
    """The newest first."""
    return [job for job in reversed(jobs.all()) if job.id.startswith(PREFIX)]


def current(jobs: Jobs) -> Job | None:
    return next((job for job in sessions(jobs)[:1] if job.state == "running" and job.hears), None)


async def _session(
    context: Context, environ: Mapping[str, str], basis: Mapping[str, str], *, fresh: bool
) -> tuple[Job, str]:
    """The session that runs, or a new one; and what has to be said about the one before."""
    job = current(context.jobs)
    if job and job.bytes > FULL:
        raise ToolError(
            "The session has printed too much.", kind="session_full", next=["Save what counts; reset=true."]
        )
    if job:
        return job, ""
    before = sessions(context.jobs)
    order = Order(
        argv=(interpreter(context.workspace, environ), "-I", "-c", LOADER, _program(), f"{IDLE:g}"),
        cwd=str(folder(context.workspace, ".")),
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
    return job, f"[a new session: the one before {_fate(before[0])}, its variables are lost]\n" if lost else ""


def interpreter(workspace: Path, environ: Mapping[str, str]) -> str:
    """The workspace's own Python if it has one, else the user's."""
    own = workspace / ".venv" / "bin" / "python"
    if os.access(own, os.X_OK):
        return str(own)
    found = shutil.which("python3", path=environ.get("PATH"))
    if found is None:
        raise ToolError("There is no python3.", kind="no_python", next=["Ask the user to install it; use the shell."])
    return found


def _program() -> str:
    return Path(__file__).with_name("cells.py").read_text()


class Follow:
    """One cell, as the journal of its session tells it."""

    def __init__(self, context: Context, job: str, offset: int) -> None:
        self._context, self._job, self._offset = context, job, offset
        self._rest = b""
        self._said: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._said)

    async def until(self, seconds: float) -> End:
        """How it ended. A session that does not even stop its code in time is ended."""
        jobs, deadline = self._context.jobs, asyncio.get_running_loop().time() + seconds
        while True:
            job = await jobs.grown(self._job, self._offset, max(deadline - asyncio.get_running_loop().time(), 0.0))
            for line in self._lines():
                if line.end:
                    return line.end
                self._said.append(line.out)
                self._context.output(line.out)
            if job is None or job.state != "running":
                return End(state="gone", lost=True, error=_fate(job))
            if asyncio.get_running_loop().time() >= deadline:
                await jobs.stop(self._job)
                return End(state="time", lost=True)

    def _lines(self) -> Iterator[Line]:
        while data := self._context.jobs.output(self._job, self._offset, PIECE):
            self._offset += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            said = (msgspec.json.decode(line, type=Line) for line in lines if line.startswith(b"{"))
            yield from (line for line in said if line.id == self._context.call)


def _interrupt(context: Context) -> str:
    return json.dumps({"interrupt": context.call}) + "\n"


def _empty(args: Python) -> Result:
    if args.reset:
        return Result(text="The session was ended; the next call begins a new one.")
    raise ToolError("There is no code.", kind="bad_argument", next=["Give code."])


def _told(end: End, said: str, note: str, seconds: float) -> Result:
    body = note + (said if not said or said.endswith("\n") else f"{said}\n")
    if end.state == "ok":
        return Result(text=(body + _shown(end.value)).rstrip("\n") or "Done.")
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
    trouble = Trouble(kind, message, {}, (next,) if next else ())
    return Result(text=(body + detail + last).rstrip("\n"), ok=False, trouble=trouble)


def _shown(value: Value | None) -> str:
    if value is None:
        return ""
    between = "\n" if "\n" in value.text else " "
    return f"[{value.name}: {value.what}]{between}{value.text}"


def _fate(job: Job | None) -> str:
    if job is None or job.state == "lost":
        return "is lost, its runner died"
    return ENDED.get(job.why) or f"ended with {job.exit}"
