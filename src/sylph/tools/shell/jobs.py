"""Commands in the background: started, listed, looked at, talked to, waited for, stopped."""

import asyncio
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from sylph.core.command_run import BackgroundJob, CommandSpec, JobInput, StopReason
from sylph.core.errors import ToolError
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.text.formatting import first_line
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files.workspace_paths import display_path, resolve_folder
from sylph.tools.shell.command import NONINTERACTIVE_ENV, check_command, judge_command, strip_credentials

ENDED: dict[StopReason, str] = {
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


class JobArgs(ToolArgs, frozen=True, kw_only=True):
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


def build_job_tool(environ: Mapping[str, str], places: PathPolicy) -> Tool:
    """The tool; its commands get `environ` without what looks like a credential."""
    interpreter = shutil.which("bash", path=environ.get("PATH")) or "/bin/sh"
    basis = {**strip_credentials(environ), **NONINTERACTIVE_ENV}

    async def start(args: JobArgs, context: ToolContext) -> ToolResult:
        if not args.command.strip():
            raise ToolError("There is no command to start.", kind="bad_command", next=["Give command."])
        check_command(args.command, args.env)
        limit = args.seconds if args.seconds != PATIENCE else LONGEST
        place = str(resolve_folder(context.workspace, args.cwd))
        order = CommandSpec(
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
        return ToolResult(
            text=f"Started job {job.id}.\n{describe_job(job)}", ok=job.state == "running" or job.exit == 0
        )

    async def run(args: JobArgs, context: ToolContext) -> ToolResult:
        match args.action:
            case "start":
                return await start(args, context)
            case "list":
                return ToolResult(text="\n".join(map(describe_job, context.jobs.all())) or "There are no jobs.")
            case "output":
                return _read_output(args, context)
            case "input":
                return await _send_input(args, context)
            case "wait":
                return _finished_result(
                    args, await context.jobs.wait(args.id, min(args.seconds, context.seconds)), context
                )
            case "stop":
                return _finished_result(args, await context.jobs.stop(args.id), context)

    return Tool(
        name="job",
        description="Commands in the background (servers, long builds). They go on when the turn ends.",
        args=JobArgs,
        run=run,
        effect="write",
        risk="caution",
        recourse="by_probe",
        preview=preview_job,
        judge=partial(_judge_job, places=places),
        recover=recover_job,
        seconds=LONGEST,
    )


END = "[end of input]"
SAID = {"input": "sends a running job what it reads", "stop": "stops a job"}


def _judge_job(args: JobArgs, context: ToolContext, places: PathPolicy) -> CallAssessment:
    if args.action in ("list", "output", "wait"):
        return CallAssessment("read", "safe", "only looks at jobs")
    if args.action != "start":
        return CallAssessment("write", "caution", SAID[args.action])
    found = replace(judge_command(args.command, args.cwd, context, places, args.env), outside=args.outside)
    # It goes on when the turn has ended: that is more than a look.
    return replace(found, effect="write", why=f"starts a job: {found.why}") if found.effect == "read" else found


async def preview_job(args: JobArgs, context: ToolContext) -> str:
    if args.action == "stop":
        job = _find_job(args, context)
        return f"would stop {describe_job(job)}"
    if args.action == "input":
        return f"would send to {describe_job(_find_job(args, context))}:\n{args.text}{END if args.close else ''}"
    place = display_path(context.workspace, resolve_folder(context.workspace, args.cwd))
    how = ", outside of the sandbox" if args.outside else ""
    return f"would start in the background in {place}{how}:\n{args.command}"


async def recover_job(args: JobArgs, context: ToolContext) -> ToolResult | None:
    """What was started or taken is in the journal of the job; all the rest does no harm when it is done again."""
    if args.action == "input" and context.jobs.input_taken(args.id, context.call):
        return ToolResult(text=f"Sent before Sylph was interrupted.\n{describe_job(_find_job(args, context))}")
    job = context.jobs.recover(context.call) if args.action == "start" else None
    return (
        ToolResult(text=f"Job {job.id} was started before Sylph was interrupted.\n{describe_job(job)}") if job else None
    )


def describe_job(job: BackgroundJob) -> str:
    """One line about a job."""
    fate = {"running": "running", "lost": "lost: its runner died, how it ended is not known"}.get(job.state)
    if fate is None:
        ended = ENDED.get(job.why, "")
        fate = f"could not start{ended}" if job.exit is None else f"exit {job.exit}{ended}"
    hears = ", reads input" if job.hears else ""
    return f"{job.id}  {fate}{hears}  {job.seconds:.1f} s  {job.bytes:,} bytes  {first_line(job.command)}"


def _find_job(args: JobArgs, context: ToolContext) -> BackgroundJob:
    job = context.jobs.find(args.id)
    if job is None:
        known = ", ".join(job.id for job in context.jobs.all()) or "none"
        raise ToolError(f"There is no job {args.id!r}.", kind="not_found", next=[f"Known jobs: {known}."])
    return job


def _read_output(args: JobArgs, context: ToolContext) -> ToolResult:
    job = _find_job(args, context)
    data = context.jobs.output(args.id, args.offset, PIECE)
    upto = args.offset + len(data)
    more = f" Go on with offset={upto}." if upto < job.bytes else ""
    text = data.decode("utf-8", "replace")
    return ToolResult(text=f"{text}\n[bytes {args.offset}-{upto} of {job.bytes}; {describe_job(job)}]{more}")


async def _send_input(args: JobArgs, context: ToolContext) -> ToolResult:
    job = _find_job(args, context)
    if not args.text and not args.close:
        raise ToolError("There is nothing to send.", kind="bad_input", next=["Give text, or close=true."])
    if not job.hears:
        raise ToolError(
            f"Job {job.id} takes no input: {_no_input_reason(job)}.",
            kind="no_input",
            next=["Start it with interactive=true."],
        )
    if not await context.jobs.send(job.id, JobInput(key=context.call, text=args.text, close=args.close)):
        raise ToolError(
            f"Job {job.id} did not take the input: it has ended, or leaves unread what it got before.",
            kind="not_taken",
            next=["Look at its output; send less at once."],
        )
    after = await _await_reaction(job, context)
    said = context.jobs.output(job.id, job.bytes, PIECE).decode("utf-8", "replace")
    return ToolResult(
        text=f"Sent {len(args.text.encode()):,} bytes{', then closed its input' if args.close else ''}.\n"
        f"{said}\n[from byte {job.bytes}; {describe_job(after)}]"
    )


async def _await_reaction(job: BackgroundJob, context: ToolContext) -> BackgroundJob:
    """Waits for the first words of its reaction, and until it pauses."""
    clock, seen, pause = asyncio.get_running_loop().time, job, REACTION
    end = clock() + min(REACTION, context.seconds)
    while (left := end - clock()) > 0:
        after = await context.jobs.wait_output(job.id, seen.bytes, min(left, pause)) or seen
        if after.bytes == seen.bytes or after.state != "running":
            return after
        seen, pause = after, PAUSE
    return seen


def _no_input_reason(job: BackgroundJob) -> str:
    if job.state != "running":
        return "it does not run any more"
    return "its input is closed"


def _finished_result(args: JobArgs, job: BackgroundJob | None, context: ToolContext) -> ToolResult:
    if job is None:
        job = _find_job(args, context)
    if job.state == "running":
        return ToolResult(text=f"It still runs.\n{describe_job(job)}")
    tail = context.jobs.output(args.id, max(job.bytes - PIECE, 0), PIECE).decode("utf-8", "replace")
    return ToolResult(text=f"{tail}\n{describe_job(job)}", exit=job.exit, ok=job.exit == 0 or args.action == "stop")
