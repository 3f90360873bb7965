"""`sylph job …`: commands that sessions have left running in the background."""

import sys

import click
import msgspec
from msgspec import Struct

from sylph.app import App
from sylph.core.command_run import BackgroundJob, StopReason
from sylph.core.errors import NotFound, UserError
from sylph.core.text.suggestion import suggest_word
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import find_session
from sylph.interfaces.text.render import format_duration, format_size, one_line
from sylph.interfaces.text.sanitize import sanitize_text

PIECE = 1_000_000
END_REASONS: dict[StopReason, str] = {
    "time": "out of time",
    "memory": "out of memory",
    "cpu": "out of processor time",
    "processes": "too many processes",
    "stopped": "stopped",
}
LIST_HINT = ("sylph job list --all",)


class SessionJob(Struct, frozen=True):
    """A job and whose it is."""

    session: str
    job: BackgroundJob

    @property
    def name(self) -> str:
        return f"{self.session}.{self.job.id}"

    def as_dict(self) -> dict[str, object]:
        """As `--json` shows it. These names are kept."""
        return {**msgspec.to_builtins(self.job), "id": self.name, "session": self.session, "job": self.job.id}


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Look at commands in the background and end them. A JOB is SESSION.ID, as `job list` shows it."""


@command.command("list")
@click.option("-s", "--session", default="", help="Only those of this session.")
@click.option("-a", "--all", "ended", is_flag=True, help="Those that have ended, too.")
@json_option
@click.pass_obj
def list_jobs(cli: CliContext, session: str, *, ended: bool, as_json: bool) -> int:
    """List the jobs that run."""

    async def work(app: App) -> list[SessionJob]:
        return await find_jobs(app.runtime, session)

    found = [each for each in cli.run_read_only(work) if ended or each.job.state == "running"]
    if as_json:
        return print_json([each.as_dict() for each in found])
    if not found:
        print_text("No jobs." if ended else "No job runs.")
        return 0
    rows = [
        [
            each.name,
            job_state_text(each.job),
            format_duration(int(each.job.seconds * 1000)),
            format_size(each.job.bytes),
            one_line(each.job.command, 60),
        ]
        for each in found
    ]
    print_table([["JOB", "STATE", "TIME", "OUTPUT", "COMMAND"], *rows], drop=(3, 2))
    return 0


@command.command()
@click.argument("job")
@click.option("--offset", type=click.IntRange(0), default=0, help="Bytes to skip.")
@json_option
@click.pass_obj
def output(cli: CliContext, job: str, offset: int, *, as_json: bool) -> int:
    """Print what a job has printed so far."""

    async def work(app: App) -> int:
        one = await find_job(app.runtime, job)
        jobs, at = app.runtime.session_jobs(one.session), offset
        if as_json:
            text = jobs.output(one.job.id, at, PIECE).decode("utf-8", "replace")
            return print_json({**one.as_dict(), "offset": at, "output": text})
        while piece := jobs.output(one.job.id, at, PIECE):
            at += len(piece)
            text = piece.decode("utf-8", "replace")
            # What a program prints must not steer the user's terminal.
            sys.stdout.write(sanitize_text(text) if sys.stdout.isatty() else text)
        return 0

    return cli.run_read_only(work)


@command.command()
@click.argument("job")
@json_option
@click.pass_obj
def stop(cli: CliContext, job: str, *, as_json: bool) -> int:
    """End a job and all it has started."""

    async def work(app: App) -> int:
        one = await find_job(app.runtime, job)
        if one.job.state == "ended":
            raise UserError(
                f"{one.name} has ended already: {job_state_text(one.job)}.", kind="wrong_state", next=LIST_HINT
            )
        after = SessionJob(one.session, await app.runtime.session_jobs(one.session).stop(one.job.id) or one.job)
        if after.job.state == "running":
            raise UserError(f"{one.name} did not end.", kind="failed", next=[f"sylph job stop {one.name}"])
        if as_json:
            return print_json(after.as_dict())
        print_text(f"{after.name}  {job_state_text(after.job)}")
        return 0

    return cli.run_read_only(work)


async def find_jobs(runtime: Runtime, session: str = "") -> list[SessionJob]:
    """The jobs of one session or of all, those of the latest session first."""
    ids = (
        [(await find_session(runtime, session)).id]
        if session
        else [summary.id for summary in await runtime.list_sessions()]
    )
    return [SessionJob(id, job) for id in ids for job in runtime.session_jobs(id).all()]


async def find_job(runtime: Runtime, name: str) -> SessionJob:
    """The job called SESSION.ID; of a session the beginning is enough."""
    session, _, id = name.partition(".")
    try:
        found = await find_jobs(runtime, session) if session else []
    except NotFound as error:
        # Whoever names a job has not asked for a session. Where several begin so, that is what helps.
        if error.trouble.kind == "ambiguous":
            raise
        found = []
    for each in found:
        if each.job.id == id:
            return each
    raise NotFound(f"There is no job {name!r}.{suggest_word(name, [each.name for each in found])}", next=LIST_HINT)


def job_state_text(job: BackgroundJob) -> str:
    """How it is with a job, in a word or two."""
    if job.state != "ended":
        return job.state
    return END_REASONS.get(job.why) or ("could not start" if job.exit is None else f"exit {job.exit}")
