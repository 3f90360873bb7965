"""Which session? Named by the user, or picked from a list where there is a terminal to show one."""

import shutil
from collections.abc import Mapping

import click

from sylph.core.clock import SystemClock
from sylph.core.errors import NotFound, UserError
from sylph.engine.runtime import Runtime
from sylph.engine.summary import Summary
from sylph.interfaces.cli.door import Door
from sylph.interfaces.cli.keyboard import END, Keyboard
from sylph.interfaces.cli.table import fitted
from sylph.interfaces.pending import is_interrupted, task_of
from sylph.interfaces.render import ago, flat

SHOWN = 15


async def begun(runtime: Runtime, *, deleted: bool = False) -> list[Summary]:
    """Sessions in which something was said, the latest first. One that failed before that is of no use to anybody."""
    return [summary for summary in await runtime.sessions(deleted=deleted) if summary.inputs]


async def find(runtime: Runtime, name: str, *, deleted: bool = False) -> Summary:
    """One session by its id, the beginning of its id, or `last`."""
    if name != "last":
        return await runtime.find(name)
    if found := await begun(runtime, deleted=deleted):
        return found[0]
    if deleted:
        raise NotFound("The trash is empty.", next=["sylph session list"])
    raise NotFound("There is no session yet.", next=['sylph "a task"', "sylph chat"])


async def session_named(runtime: Runtime, name: str, usage: str, *, deleted: bool = False) -> Summary:
    """The session called `name`. Without a name the person picks one; without a person that is an error."""
    if name:
        return await find(runtime, name, deleted=deleted)
    keyboard = Keyboard.find()
    if keyboard is None:
        raise UserError(
            "Which session? An id (or the start of one) is missing.",
            next=[f"{usage} last", f"{usage} ID", "sylph session list"],
        )
    return await pick(runtime, await begun(runtime, deleted=deleted), keyboard)


async def pick(runtime: Runtime, found: list[Summary], keyboard: Keyboard) -> Summary:
    """A numbered list; a number takes one, other text narrows the list."""
    if not found:
        raise UserError("There is no session yet.", next=['sylph "a task"', "sylph chat"])
    kept, room = found, shutil.get_terminal_size().columns
    while True:
        shown = kept[:SHOWN]
        tasks = {one.id: await task_of(runtime, one) for one in shown if is_interrupted(one)}
        click.echo("\n".join(rows(shown, tasks, room)), err=True)
        click.echo("number, text to filter, or Enter to leave: ", err=True, nl=False)
        text = (await keyboard.line()).strip()
        if text in ("", END):
            raise KeyboardInterrupt
        if text.isdecimal() and 1 <= int(text) <= len(shown):
            return shown[int(text) - 1]
        kept = narrowed(found, text) or found


def rows(found: list[Summary], tasks: Mapping[str, str], room: int) -> list[str]:
    """One row for each session; of an interrupted one it names the task that waits."""
    now = SystemClock().now()
    titles = [f"interrupted: {tasks[one.id]}" if one.id in tasks else one.title for one in found]
    table = [
        [str(at), one.id, flat(title, 50), ago(one.updated, now)]
        for at, (one, title) in enumerate(zip(found, titles, strict=True), 1)
    ]
    return [row[:room] for row in fitted(table, room, drop=(3,))]


def narrowed(found: list[Summary], text: str) -> list[Summary]:
    """Those with all words of `text` in their id, title or workspace."""
    words = text.lower().split()
    return [one for one in found if all(word in f"{one.id} {one.title} {one.workspace}".lower() for word in words)]


def session_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Ids that a shell can complete."""
    found = (ctx.find_object(Door) or Door()).look(lambda app: app.runtime.sessions())
    names = ["last", *(summary.id for summary in found)]
    return [name for name in names if name.startswith(incomplete)]
