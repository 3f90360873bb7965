"""Commands in the background: started, listed, looked at, waited for, stopped."""

import shutil
from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.run import Job, Order
from sylph.core.text import first_line
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools.shell import QUIET, clean
from sylph.tools.workspace import folder, shown

LONGEST = 24 * 3600.0
PATIENCE = 60.0
PIECE = 40_000


class JobArgs(Args, frozen=True, kw_only=True):
    action: Annotated[Literal["start", "list", "output", "wait", "stop"], Meta(description="What to do.")]
    command: Annotated[str, Meta(description="For start: the command line.")] = ""
    id: Annotated[str, Meta(description="For output, wait, stop: the job.")] = ""
    offset: Annotated[int, Meta(ge=0, description="For output: bytes to skip.")] = 0
    seconds: Annotated[float, Meta(gt=0, le=LONGEST, description="Start: time limit. Wait: patience.")] = PATIENCE
    cwd: Annotated[str, Meta(description="For start: folder to run in.")] = "."


def jobs(environ: Mapping[str, str]) -> Tool:
    """The tool; its commands get `environ` without what looks like a credential."""
    interpreter = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    basis = {**clean(environ), **QUIET}

    async def start(args: JobArgs, context: Context) -> Result:
        if not args.command.strip() or "\0" in args.command:
            raise ToolError("There is no command to start.", kind="bad_command", next=["Give command."])
        limit = args.seconds if args.seconds != PATIENCE else LONGEST
        place = str(folder(context.workspace, args.cwd))
        order = Order(
            argv=(interpreter, "-c", args.command),
            cwd=place,
            env=basis,
            seconds=limit,
            memory=context.memory,
            job=True,
        )
        job = await context.jobs.start(context.call, order)
        return Result(text=f"Started job {job.id}.\n{told(job)}", ok=job.state == "running" or job.exit == 0)

    async def run(args: JobArgs, context: Context) -> Result:
        match args.action:
            case "start":
                return await start(args, context)
            case "list":
                return Result(text="\n".join(map(told, context.jobs.all())) or "There are no jobs.")
            case "output":
                return _output(args, context)
            case "wait":
                return _ended(args, await context.jobs.wait(args.id, min(args.seconds, context.seconds)), context)
            case "stop":
                return _ended(args, await context.jobs.stop(args.id), context)

    return Tool(
        name="job",
        description="Commands in the background (servers, long builds). They go on when the turn ends.",
        args=JobArgs,
        run=run,
        effect="write",
        risk="caution",
        recourse="by_probe",
        preview=preview,
        judge=judge,
        recover=recover,
        seconds=LONGEST,
    )


def judge(args: JobArgs, _: Context) -> Judged:
    if args.action in ("list", "output", "wait"):
        return Judged("read", "safe", "only looks at jobs")
    return Judged("write", "caution", f"{args.action}s a job")


async def preview(args: JobArgs, context: Context) -> str:
    if args.action == "stop":
        job = _find(args, context)
        return f"would stop {told(job)}"
    place = shown(context.workspace, folder(context.workspace, args.cwd))
    return f"would start in the background in {place}:\n{args.command}"


async def recover(args: JobArgs, context: Context) -> Result | None:
    """A job that was started is in its journal; everything else does no harm when it is done again."""
    job = context.jobs.recover(context.call) if args.action == "start" else None
    return Result(text=f"Job {job.id} was started before Sylph was interrupted.\n{told(job)}") if job else None


def told(job: Job) -> str:
    """One line about a job."""
    fate = {"running": "running", "lost": "lost: its runner died, how it ended is not known"}.get(job.state)
    if fate is None:
        ended = {"time": ", out of time", "memory": ", out of memory", "stopped": ", stopped"}.get(job.why, "")
        fate = f"could not start{ended}" if job.exit is None else f"exit {job.exit}{ended}"
    return f"{job.id}  {fate}  {job.seconds:.1f} s  {job.bytes:,} bytes  {first_line(job.command)}"


def _find(args: JobArgs, context: Context) -> Job:
    job = context.jobs.find(args.id)
    if job is None:
        known = ", ".join(job.id for job in context.jobs.all()) or "none"
        raise ToolError(f"There is no job {args.id!r}.", kind="not_found", next=[f"Known jobs: {known}."])
    return job


def _output(args: JobArgs, context: Context) -> Result:
    job = _find(args, context)
    data = context.jobs.output(args.id, args.offset, PIECE)
    upto = args.offset + len(data)
    more = f" Go on with offset={upto}." if upto < job.bytes else ""
    text = data.decode("utf-8", "replace")
    return Result(text=f"{text}\n[bytes {args.offset}-{upto} of {job.bytes}; {told(job)}]{more}")


def _ended(args: JobArgs, job: Job | None, context: Context) -> Result:
    if job is None:
        job = _find(args, context)
    if job.state == "running":
        return Result(text=f"It still runs.\n{told(job)}")
    tail = context.jobs.output(args.id, max(job.bytes - PIECE, 0), PIECE).decode("utf-8", "replace")
    return Result(text=f"{tail}\n{told(job)}", exit=job.exit, ok=job.exit == 0 or args.action == "stop")
