"""`sylph job …`: commands that sessions have left running in the background."""

import sys

import click
import msgspec
from msgspec import Struct

from sylph.app import App
from sylph.core.errors import NotFound, UserError
from sylph.core.run import Job, Why
from sylph.core.similar import guess
from sylph.engine.runtime import Runtime
from sylph.interfaces.clean import clean
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.picker import find
from sylph.interfaces.render import flat, size, took

PIECE = 1_000_000
ENDED: dict[Why, str] = {
    "time": "out of time",
    "memory": "out of memory",
    "cpu": "out of processor time",
    "processes": "too many processes",
    "stopped": "stopped",
}
LIST = ("sylph job list --all",)


class Held(Struct, frozen=True):
    """A job and whose it is."""

    session: str
    job: Job

    @property
    def name(self) -> str:
        return f"{self.session}.{self.job.id}"

    def told(self) -> dict[str, object]:
        """As `--json` shows it. These names are kept."""
        return {**msgspec.to_builtins(self.job), "id": self.name, "session": self.session, "job": self.job.id}


@click.group(cls=Group)
def command() -> None:
    """Look at commands in the background and end them. A JOB is SESSION.ID, as `job list` shows it."""


@command.command("list")
@click.option("-s", "--session", default="", help="Only those of this session.")
@click.option("-a", "--all", "ended", is_flag=True, help="Those that have ended, too.")
@json_option
@click.pass_obj
def list_(door: Door, session: str, *, ended: bool, as_json: bool) -> int:
    """List the jobs that run."""

    async def work(app: App) -> list[Held]:
        return await held(app.runtime, session)

    found = [each for each in door.look(work) if ended or each.job.state == "running"]
    if as_json:
        return put_json([each.told() for each in found])
    if not found:
        put("No jobs." if ended else "No job runs.")
        return 0
    rows = [
        [
            each.name,
            fate(each.job),
            took(int(each.job.seconds * 1000)),
            size(each.job.bytes),
            flat(each.job.command, 60),
        ]
        for each in found
    ]
    put_table([["JOB", "STATE", "TIME", "OUTPUT", "COMMAND"], *rows], drop=(3, 2))
    return 0


@command.command()
@click.argument("job")
@click.option("--offset", type=click.IntRange(0), default=0, help="Bytes to skip.")
@json_option
@click.pass_obj
def output(door: Door, job: str, offset: int, *, as_json: bool) -> int:
    """Print what a job has printed so far."""

    async def work(app: App) -> int:
        one = await named(app.runtime, job)
        jobs, at = app.runtime.jobs(one.session), offset
        if as_json:
            text = jobs.output(one.job.id, at, PIECE).decode("utf-8", "replace")
            return put_json({**one.told(), "offset": at, "output": text})
        while piece := jobs.output(one.job.id, at, PIECE):
            at += len(piece)
            text = piece.decode("utf-8", "replace")
            # What a program prints must not steer the user's terminal.
            sys.stdout.write(clean(text) if sys.stdout.isatty() else text)
        return 0

    return door.look(work)


@command.command()
@click.argument("job")
@json_option
@click.pass_obj
def stop(door: Door, job: str, *, as_json: bool) -> int:
    """End a job and all it has started."""

    async def work(app: App) -> int:
        one = await named(app.runtime, job)
        if one.job.state == "ended":
            raise UserError(f"{one.name} has ended already: {fate(one.job)}.", kind="wrong_state", next=LIST)
        after = Held(one.session, await app.runtime.jobs(one.session).stop(one.job.id) or one.job)
        if after.job.state == "running":
            raise UserError(f"{one.name} did not end.", kind="failed", next=[f"sylph job stop {one.name}"])
        if as_json:
            return put_json(after.told())
        put(f"{after.name}  {fate(after.job)}")
        return 0

    return door.look(work)


async def held(runtime: Runtime, session: str = "") -> list[Held]:
    """The jobs of one session or of all, those of the latest session first."""
    ids = [(await find(runtime, session)).id] if session else [summary.id for summary in await runtime.sessions()]
    return [Held(id, job) for id in ids for job in runtime.jobs(id).all()]


async def named(runtime: Runtime, name: str) -> Held:
    """The job called SESSION.ID; of a session the beginning is enough."""
    session, _, id = name.partition(".")
    try:
        found = await held(runtime, session) if session else []
    except NotFound as error:
        # Whoever names a job has not asked for a session. Where several begin so, that is what helps.
        if error.trouble.kind == "ambiguous":
            raise
        found = []
    for each in found:
        if each.job.id == id:
            return each
    raise NotFound(f"There is no job {name!r}.{guess(name, [each.name for each in found])}", next=LIST)


def fate(job: Job) -> str:
    """How it is with a job, in a word or two."""
    if job.state != "ended":
        return job.state
    return ENDED.get(job.why) or ("could not start" if job.exit is None else f"exit {job.exit}")
