"""`sylph task …`: the turns that were run, each as a task with its outcome."""

import asyncio
import sys

import click

from sylph.app import App
from sylph.core.clock import SystemClock
from sylph.core.errors import NotFound
from sylph.core.events import Event, encode_event
from sylph.core.facts.turn import InputReceived
from sylph.core.text.suggestion import suggest_word
from sylph.engine.folds.tasks import TurnTask
from sylph.interfaces.cli.commands.session.group import read_all_events, read_full_outputs
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.colours import paint_lines
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import find_or_pick_session, find_session
from sylph.interfaces.text.render import format_age, format_duration, format_money, format_usage, one_line
from sylph.interfaces.text.transcript import TranscriptRenderer, render_transcript

# A replay waits between events as long as it did then, divided by the speed, but never longer than this.
MAX_PAUSE = 2.0


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Look at turns. A TASK is SESSION.NUMBER, as `task list` shows it; SESSION alone means its last turn."""


@command.command("list")
@click.option("-s", "--session", default="", help="Only those of this session.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most this many.")
@json_option
@click.pass_obj
def list_tasks(cli: CliContext, session: str, limit: int, *, as_json: bool) -> int:
    """List tasks, the latest first."""

    async def work(app: App) -> list[TurnTask]:
        return await app.runtime.list_tasks((await find_session(app.runtime, session)).id if session else "")

    found = cli.run_read_only(work)[:limit]
    if as_json:
        return print_json(found)
    now = SystemClock().now()
    rows = [
        [
            t.id,
            one_line(t.text, 50),
            t.outcome,
            format_duration(t.ms),
            format_money(t.cost) or "-",
            format_age(t.started, now),
        ]
        for t in found
    ]
    if not rows:
        print_text("No tasks yet.")
        return 0
    print_table([["ID", "TASK", "OUTCOME", "TIME", "COST", "STARTED"], *rows], drop=(4, 3, 5, 2))
    return 0


@command.command()
@click.argument("task", required=False, default="")
@click.option("--full", is_flag=True, help="Whole outputs instead of their first lines.")
@json_option
@click.pass_obj
def show(cli: CliContext, task: str, *, full: bool, as_json: bool) -> int:
    """Show one task: what was asked, what was done, and the answer."""

    async def work(app: App) -> int:
        found = await find_task(app, task, "sylph task show")
        if as_json:
            return print_json(found)
        events = await read_turn_events(app, found)
        wholes = await read_full_outputs(app.runtime, found.session, events) if full else None
        colour = sys.stdout.isatty() and app.config.terminal.colour
        print_text(paint_lines(render_transcript(events, wholes), colour=colour).strip("\n"))
        print_text(f"{found.id}  {format_usage(found.usage, found.cost)}")
        return 0

    return cli.run_read_only(work)


@command.command()
@click.argument("task", required=False, default="")
@click.option("--speed", type=click.FloatRange(min=0), default=0.0, help="1 is as fast as it was; 0 does not wait.")
@json_option
@click.pass_obj
def replay(cli: CliContext, task: str, speed: float, *, as_json: bool) -> int:
    """Watch a task again, from its log. Nothing is run."""

    async def work(app: App) -> int:
        found = await find_task(app, task, "sylph task replay")
        events = await read_turn_events(app, found)
        told = TranscriptRenderer()
        colour = sys.stdout.isatty() and app.config.terminal.colour
        for before, event in zip([events[0], *events], events, strict=False):
            await asyncio.sleep(min((event.ts - before.ts) / 1000 / speed, MAX_PAUSE) if speed else 0)
            text = (
                f"{encode_event(event).decode()}\n" if as_json else paint_lines(told.render_event(event), colour=colour)
            )
            sys.stdout.write(text)
            sys.stdout.flush()
        return 0

    return cli.run_read_only(work)


async def find_task(app: App, name: str, usage: str) -> TurnTask:
    """The task called SESSION.NUMBER; of a SESSION alone the last one."""
    session, _, number = name.partition(".")
    summary = await find_or_pick_session(app.runtime, session, usage)
    found = await app.runtime.list_tasks(summary.id)
    wanted = f"{summary.id}.{number}" if number else next((task.id for task in found), "")
    for task in found:
        if task.id == wanted:
            return task
    known = suggest_word(wanted, [task.id for task in found])
    raise NotFound(f"There is no task {name!r}.{known}", next=[f"sylph task list --session {summary.id}"])


async def read_turn_events(app: App, task: TurnTask) -> list[Event]:
    """The events of one turn, with the messages that reached it."""
    events = await read_all_events(app.runtime, task.session)
    return [event for event in events if event.turn == task.turn or isinstance(event.body, InputReceived)]
