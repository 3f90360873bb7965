"""Which session? Named by the user, or picked from a list where there is a terminal to show one."""

import shutil
from collections.abc import Mapping

import click

from sylph.core.clock import SystemClock
from sylph.core.errors import NotFound, UserError
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.cli.kit.cli_context import CliContext
from sylph.interfaces.cli.kit.table import fit_rows
from sylph.interfaces.cli.terminal.keyboard import END_OF_INPUT, Keyboard
from sylph.interfaces.text.interrupted_turn import interrupted_task, is_interrupted
from sylph.interfaces.text.render import format_age, one_line

PAGE_SIZE = 15


async def started_sessions(runtime: Runtime, *, deleted: bool = False) -> list[SessionState]:
    """Sessions in which something was said, the latest first. One that failed before that is of no use to anybody."""
    return [summary for summary in await runtime.list_sessions(deleted=deleted) if summary.inputs]


async def find_session(runtime: Runtime, name: str, *, deleted: bool = False) -> SessionState:
    """One session by its id, the beginning of its id, or `last`."""
    if name != "last":
        return await runtime.find_session(name)
    if found := await started_sessions(runtime, deleted=deleted):
        return found[0]
    if deleted:
        raise NotFound("The trash is empty.", next=["sylph session list"])
    raise NotFound("There is no session yet.", next=['sylph "a task"', "sylph chat"])


async def find_or_pick_session(runtime: Runtime, name: str, usage: str, *, deleted: bool = False) -> SessionState:
    """The session called `name`. Without a name the person picks one; without a person that is an error."""
    if name:
        return await find_session(runtime, name, deleted=deleted)
    keyboard = Keyboard.find()
    if keyboard is None:
        raise UserError(
            "Which session? An id (or the start of one) is missing.",
            next=[f"{usage} last", f"{usage} ID", "sylph session list"],
        )
    return await pick_session(runtime, await started_sessions(runtime, deleted=deleted), keyboard)


async def pick_session(runtime: Runtime, found: list[SessionState], keyboard: Keyboard) -> SessionState:
    """A numbered list; a number takes one, other text narrows the list."""
    if not found:
        raise UserError("There is no session yet.", next=['sylph "a task"', "sylph chat"])
    kept, room = found, shutil.get_terminal_size().columns
    while True:
        shown = kept[:PAGE_SIZE]
        tasks = {one.id: await interrupted_task(runtime, one) for one in shown if is_interrupted(one)}
        click.echo("\n".join(session_rows(shown, tasks, room)), err=True)
        click.echo("number, text to filter, or Enter to leave: ", err=True, nl=False)
        text = (await keyboard.read_line()).strip()
        if text in ("", END_OF_INPUT):
            raise KeyboardInterrupt
        if text.isdecimal() and 1 <= int(text) <= len(shown):
            return shown[int(text) - 1]
        kept = filter_sessions(found, text) or found


def session_rows(found: list[SessionState], tasks: Mapping[str, str], room: int) -> list[str]:
    """One row for each session; of an interrupted one it names the task that waits."""
    now = SystemClock().now()
    titles = [f"interrupted: {tasks[one.id]}" if one.id in tasks else one.title for one in found]
    table = [
        [str(at), one.id, one_line(title, 50), format_age(one.updated, now)]
        for at, (one, title) in enumerate(zip(found, titles, strict=True), 1)
    ]
    return [row[:room] for row in fit_rows(table, room, drop=(3,))]


def filter_sessions(found: list[SessionState], text: str) -> list[SessionState]:
    """Those with all words of `text` in their id, title or workspace."""
    words = text.lower().split()
    return [one for one in found if all(word in f"{one.id} {one.title} {one.workspace}".lower() for word in words)]


def complete_session_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Ids that a shell can complete."""
    found = (ctx.find_object(CliContext) or CliContext()).run_read_only(lambda app: app.runtime.list_sessions())
    names = ["last", *(summary.id for summary in found)]
    return [name for name in names if name.startswith(incomplete)]
