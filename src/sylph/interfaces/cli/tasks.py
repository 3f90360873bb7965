"""`sylph task …`: the turns that were run, each as a task with its outcome."""

import asyncio
import sys

import click

from sylph.app import App
from sylph.core.clock import SystemClock
from sylph.core.errors import NotFound
from sylph.core.events import Event, line_of
from sylph.core.facts import InputReceived
from sylph.core.similar import guess
from sylph.engine.tasks import Task
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.paint import painted
from sylph.interfaces.cli.picker import find, session_named
from sylph.interfaces.cli.sessions import all_events, whole_outputs
from sylph.interfaces.render import ago, flat, money, spent, took
from sylph.interfaces.transcript import Transcript, transcript

# A replay waits between events as long as it did then, divided by the speed, but never longer than this.
LONGEST = 2.0


@click.group(cls=Group)
def command() -> None:
    """Look at turns. A TASK is SESSION.NUMBER, as `task list` shows it; SESSION alone means its last turn."""


@command.command("list")
@click.option("-s", "--session", default="", help="Only those of this session.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most this many.")
@json_option
@click.pass_obj
def list_(door: Door, session: str, limit: int, *, as_json: bool) -> int:
    """List tasks, the latest first."""

    async def work(app: App) -> list[Task]:
        return await app.runtime.tasks((await find(app.runtime, session)).id if session else "")

    found = door.look(work)[:limit]
    if as_json:
        return put_json(found)
    now = SystemClock().now()
    rows = [[t.id, flat(t.text, 50), t.outcome, took(t.ms), money(t.cost) or "-", ago(t.started, now)] for t in found]
    if not rows:
        put("No tasks yet.")
        return 0
    put_table([["ID", "TASK", "OUTCOME", "TIME", "COST", "STARTED"], *rows], drop=(4, 3, 5, 2))
    return 0


@command.command()
@click.argument("task", required=False, default="")
@click.option("--full", is_flag=True, help="Whole outputs instead of their first lines.")
@json_option
@click.pass_obj
def show(door: Door, task: str, *, full: bool, as_json: bool) -> int:
    """Show one task: what was asked, what was done, and the answer."""

    async def work(app: App) -> int:
        found = await task_named(app, task, "sylph task show")
        if as_json:
            return put_json(found)
        events = await turn_events(app, found)
        wholes = await whole_outputs(app.runtime, found.session, events) if full else None
        colour = sys.stdout.isatty() and app.config.terminal.colour
        put(painted(transcript(events, wholes), colour=colour).strip("\n"))
        put(f"{found.id}  {spent(found.usage, found.cost)}")
        return 0

    return door.look(work)


@command.command()
@click.argument("task", required=False, default="")
@click.option("--speed", type=click.FloatRange(min=0), default=0.0, help="1 is as fast as it was; 0 does not wait.")
@json_option
@click.pass_obj
def replay(door: Door, task: str, speed: float, *, as_json: bool) -> int:
    """Watch a task again, from its log. Nothing is run."""

    async def work(app: App) -> int:
        found = await task_named(app, task, "sylph task replay")
        events = await turn_events(app, found)
        told = Transcript()
        colour = sys.stdout.isatty() and app.config.terminal.colour
        for before, event in zip([events[0], *events], events, strict=False):
            await asyncio.sleep(min((event.ts - before.ts) / 1000 / speed, LONGEST) if speed else 0)
            text = f"{line_of(event).decode()}\n" if as_json else painted(told.see(event), colour=colour)
            sys.stdout.write(text)
            sys.stdout.flush()
        return 0

    return door.look(work)


async def task_named(app: App, name: str, usage: str) -> Task:
    """The task called SESSION.NUMBER; of a SESSION alone the last one."""
    session, _, number = name.partition(".")
    summary = await session_named(app.runtime, session, usage)
    found = await app.runtime.tasks(summary.id)
    wanted = f"{summary.id}.{number}" if number else next((task.id for task in found), "")
    for task in found:
        if task.id == wanted:
            return task
    known = guess(wanted, [task.id for task in found])
    raise NotFound(f"There is no task {name!r}.{known}", next=[f"sylph task list --session {summary.id}"])


async def turn_events(app: App, task: Task) -> list[Event]:
    """The events of one turn, with the messages that reached it."""
    events = await all_events(app.runtime, task.session)
    return [event for event in events if event.turn == task.turn or isinstance(event.body, InputReceived)]
