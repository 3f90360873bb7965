"""Commands in the background: started, listed, looked at, talked to, waited for, stopped."""

import asyncio
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from sylph.core.errors import ToolError
from sylph.core.places import Places
from sylph.core.run import Input, Job, Order, Why
from sylph.core.text import first_line
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools.shell import QUIET, check, clean, judged
from sylph.tools.workspace import folder, shown

ENDED: dict[Why, str] = {
    "time": ", out of time",
    "memory": ", out of memory",
    "cpu": ", out of processor time",
    "processes": ", too many processes",
    "stopped": ", stopped",
}
LONGEST = 24 * 3600.0
PATIENCE = 60.0
PIECE = 40_000
TEXT = 1_000_000
# After an input its first reaction is waited for, so that a question and its answer are one call.
REACTION = 1.0
PAUSE = 0.1


class JobArgs(Args, frozen=True, kw_only=True):
    action: Annotated[Literal["start", "list", "output", "input", "wait", "stop"], Meta(description="What to do.")]
    command: Annotated[str, Meta(description="For start: the command line.")] = ""
    id: Annotated[str, Meta(description="For all but start and list: the job.")] = ""
    offset: Annotated[int, Meta(ge=0, description="For output: bytes to skip.")] = 0
    seconds: Annotated[float, Meta(gt=0, le=LONGEST, description="Start: time limit. Wait: patience.")] = PATIENCE
    cwd: Annotated[str, Meta(description="For start: folder to run in.")] = "."
    env: Annotated[dict[str, str], Meta(description="For start: more environment variables.")] = {}
    interactive: Annotated[bool, Meta(description="For start: keep its stdin open for input.")] = False
    text: Annotated[str, Meta(max_length=TEXT, description="For input: what to send; a line needs its newline.")] = ""
    outside: Annotated[bool, Meta(description="For start: run outside of the sandbox; the user is asked.")] = False
    close: Annotated[bool, Meta(description="For input: then close its stdin.")] = False


def jobs(environ: Mapping[str, str], places: Places) -> Tool:
    """The tool; its commands get `environ` without what looks like a credential."""
    interpreter = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    basis = {**clean(environ), **QUIET}

    async def start(args: JobArgs, context: Context) -> Result:
        if not args.command.strip():
            raise ToolError("There is no command to start.", kind="bad_command", next=["Give command."])
        check(args.command, args.env)
        limit = args.seconds if args.seconds != PATIENCE else LONGEST
        place = str(folder(context.workspace, args.cwd))
        order = Order(
            argv=(interpreter, "-c", args.command),
            cwd=place,
            env={**basis, **args.env},
            seconds=limit,
            memory=context.memory,
            job=True,
            interactive=args.interactive,
            outside=args.outside,
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
            case "input":
                return await _input(args, context)
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
        judge=partial(_judge, places=places),
        recover=recover,
        seconds=LONGEST,
    )


END = "[end of input]"
SAID = {"input": "sends a running job what it reads", "stop": "stops a job"}


def _judge(args: JobArgs, context: Context, places: Places) -> Judged:
    if args.action in ("list", "output", "wait"):
        return Judged("read", "safe", "only looks at jobs")
    if args.action != "start":
        return Judged("write", "caution", SAID[args.action])
    found = replace(judged(args.command, args.cwd, context, places, args.env), outside=args.outside)
    # It goes on when the turn has ended: that is more than a look.
    return replace(found, effect="write", why=f"starts a job: {found.why}") if found.effect == "read" else found


async def preview(args: JobArgs, context: Context) -> str:
    if args.action == "stop":
        job = _find(args, context)
        return f"would stop {told(job)}"
    if args.action == "input":
        return f"would send to {told(_find(args, context))}:\n{args.text}{END if args.close else ''}"
    place = shown(context.workspace, folder(context.workspace, args.cwd))
    how = ", outside of the sandbox" if args.outside else ""
    return f"would start in the background in {place}{how}:\n{args.command}"


async def recover(args: JobArgs, context: Context) -> Result | None:
    """What was started or taken is in the journal of the job; all the rest does no harm when it is done again."""
    if args.action == "input" and context.jobs.taken(args.id, context.call):
        return Result(text=f"Sent before Sylph was interrupted.\n{told(_find(args, context))}")
    job = context.jobs.recover(context.call) if args.action == "start" else None
    return Result(text=f"Job {job.id} was started before Sylph was interrupted.\n{told(job)}") if job else None


def told(job: Job) -> str:
    """One line about a job."""
    fate = {"running": "running", "lost": "lost: its runner died, how it ended is not known"}.get(job.state)
    if fate is None:
        ended = ENDED.get(job.why, "")
        fate = f"could not start{ended}" if job.exit is None else f"exit {job.exit}{ended}"
    hears = ", reads input" if job.hears else ""
    return f"{job.id}  {fate}{hears}  {job.seconds:.1f} s  {job.bytes:,} bytes  {first_line(job.command)}"


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


async def _input(args: JobArgs, context: Context) -> Result:
    job = _find(args, context)
    if not args.text and not args.close:
        raise ToolError("There is nothing to send.", kind="bad_input", next=["Give text, or close=true."])
    if not job.hears:
        raise ToolError(
            f"Job {job.id} takes no input: {_deaf(job)}.", kind="no_input", next=["Start it with interactive=true."]
        )
    if not await context.jobs.send(job.id, Input(key=context.call, text=args.text, close=args.close)):
        raise ToolError(
            f"Job {job.id} did not take the input: it has ended, or leaves unread what it got before.",
            kind="not_taken",
            next=["Look at its output; send less at once."],
        )
    after = await _reacted(job, context)
    said = context.jobs.output(job.id, job.bytes, PIECE).decode("utf-8", "replace")
    return Result(
        text=f"Sent {len(args.text.encode()):,} bytes{', then closed its input' if args.close else ''}.\n"
        f"{said}\n[from byte {job.bytes}; {told(after)}]"
    )


async def _reacted(job: Job, context: Context) -> Job:
    """Waits for the first words of its reaction, and until it pauses."""
    clock, seen, pause = asyncio.get_running_loop().time, job, REACTION
    end = clock() + min(REACTION, context.seconds)
    while (left := end - clock()) > 0:
        after = await context.jobs.grown(job.id, seen.bytes, min(left, pause)) or seen
        if after.bytes == seen.bytes or after.state != "running":
            return after
        seen, pause = after, PAUSE
    return seen


def _deaf(job: Job) -> str:
    if job.state != "running":
        return "it does not run any more"
    return "its input is closed"


def _ended(args: JobArgs, job: Job | None, context: Context) -> Result:
    if job is None:
        job = _find(args, context)
    if job.state == "running":
        return Result(text=f"It still runs.\n{told(job)}")
    tail = context.jobs.output(args.id, max(job.bytes - PIECE, 0), PIECE).decode("utf-8", "replace")
    return Result(text=f"{tail}\n{told(job)}", exit=job.exit, ok=job.exit == 0 or args.action == "stop")
