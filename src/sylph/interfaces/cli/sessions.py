"""`sylph session …`: what was talked about, and what can be done with it."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from sylph.app import App
from sylph.core import gauge
from sylph.core.clock import SystemClock
from sylph.core.commands import Delete, Rename, Restore
from sylph.core.errors import UserError
from sylph.core.events import Event, line_of
from sylph.core.facts import ToolFinished
from sylph.core.text import count
from sylph.engine.runtime import Runtime
from sylph.engine.summary import Summary
from sylph.interfaces import allowance
from sylph.interfaces.cli import resume, search, shelve
from sylph.interfaces.cli.door import Door, done, put, put_json, put_table, write_new
from sylph.interfaces.cli.lazy import Group
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.paint import painted
from sylph.interfaces.cli.picker import begun, find, session_named, session_names
from sylph.interfaces.cli.tree import drawn
from sylph.interfaces.confinement import switched_off
from sylph.interfaces.pending import is_interrupted
from sylph.interfaces.render import ago, flat, money, spent
from sylph.interfaces.transcript import event_rows, transcript

PAGE = 1000
LIST_DELETED = ("sylph session list --deleted",)
one = click.argument("session", required=False, default="", shell_complete=session_names)


@click.group(cls=Group)
def command() -> None:
    """Look at sessions and change them. SESSION is an id, the start of one, or `last`."""


command.add_command(resume.command, "resume")
command.add_command(search.command, "search")
command.add_command(shelve.archive, "archive")
command.add_command(shelve.unarchive, "unarchive")
command.add_command(shelve.pin, "pin")
command.add_command(shelve.unpin, "unpin")


@command.command("list")
@click.option("--deleted", is_flag=True, help="Those in the trash instead.")
@click.option("--archived", is_flag=True, help="Those put aside instead.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most this many.")
@json_option
@click.pass_obj
def list_(door: Door, *, deleted: bool, archived: bool, limit: int, as_json: bool) -> int:
    """List sessions, the pinned ones first, then the latest."""
    found = door.look(lambda app: begun(app.runtime, deleted=deleted))
    found = [each for each in found if deleted or each.archived == archived]
    found.sort(key=lambda each: not each.pinned)
    if as_json:
        return put_json([facts_of(summary) for summary in found[:limit]])
    if not found:
        put("The trash is empty." if deleted else "No session is put aside." if archived else "No sessions yet.")
        return 0
    head = ["ID", "TITLE", "STATE", "TURNS", "COST", "MODEL", "CHANGED"]
    put_table([head, *map(row, found[:limit])], drop=(4, 5, 3, 6, 2))
    if len(found) > limit:
        put(f"… and {len(found) - limit} more (--limit)")
    return 0


@command.command()
@one
@click.option("--events", is_flag=True, help="Every event, as a table.")
@click.option("--full", is_flag=True, help="Whole outputs instead of their first lines.")
@click.option("--diff", is_flag=True, help="What each turn changed in files, line by line.")
@json_option
@click.pass_obj
def show(door: Door, session: str, *, events: bool, full: bool, diff: bool, as_json: bool) -> int:
    """Show a session: what was said and done, which files each turn changed, and what it cost."""

    async def work(app: App) -> int:
        summary = await session_named(app.runtime, session, "sylph session show")
        read = await all_events(app.runtime, summary.id)
        if as_json and events:
            sys.stdout.writelines(line_of(event).decode() + "\n" for event in read)
        elif as_json:
            stands = list(allowance.rows(await app.budgets(summary)))
            put_json({**facts_of(summary), "changes": await app.runtime.changes(summary.id), "budgets": stands})
        elif events:
            put_table([["SEQ", "TIME", "TURN", "TYPE", "ACTOR", "DATA"], *event_rows(read)], drop=(5, 4, 1))
        else:
            wholes = await whole_outputs(app.runtime, summary.id, read) if full else None
            put("\n".join([*heading(summary), *await budgets(app, summary)]))
            colour = sys.stdout.isatty() and app.config.terminal.colour
            turns = await app.runtime.changes(summary.id)
            put(painted(transcript(read, wholes, turns, diff=diff), colour=colour).rstrip("\n"))
        return 0

    return door.look(work)


@command.command()
@click.argument("session", shell_complete=session_names)
@click.argument("title", nargs=-1, required=True)
@json_option
@click.pass_obj
def rename(door: Door, session: str, title: tuple[str, ...], *, as_json: bool) -> int:
    """Give a session another title."""

    async def work(app: App) -> int:
        summary, named = await find(app.runtime, session), flat(" ".join(title), 200)
        await app.runtime.send(summary.id, Rename(title=named))
        return done(f"{summary.id}  {named}", summary.id, as_json=as_json, title=named)

    return door.run(work)


@command.command()
@one
@click.option("--forever", is_flag=True, help="Remove it for good instead of putting it into the trash.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete(door: Door, session: str, *, forever: bool, yes: bool, as_json: bool) -> int:
    """Put a session into the trash; `session restore` brings it back."""

    async def work(app: App) -> int:
        summary = await session_named(app.runtime, session, "sylph session delete")
        if not forever:
            await app.runtime.send(summary.id, Delete())
            said = f"{summary.id} is in the trash. Bring it back: sylph session restore {summary.id}"
            return done(said, summary.id, as_json=as_json, forever=False)
        if not yes and not confirmed(f"Remove {summary.id} ({flat(summary.title)}) for good?"):
            raise UserError("Nothing was removed.", kind="refused", next=["--yes does not ask"])
        await app.runtime.purge(summary.id)
        return done(f"{summary.id} is gone.", summary.id, as_json=as_json, forever=True)

    return door.run(work)


@command.command()
@one
@json_option
@click.pass_obj
def restore(door: Door, session: str, *, as_json: bool) -> int:
    """Bring a session back from the trash; `last` is the one that was deleted last."""

    async def work(app: App) -> int:
        summary = await session_named(app.runtime, session, "sylph session restore", deleted=True)
        if not summary.deleted:
            raise UserError(f"{summary.id} is not in the trash.", kind="wrong_state", next=LIST_DELETED)
        await app.runtime.send(summary.id, Restore())
        return done(f"{summary.id} is back.", summary.id, as_json=as_json)

    return door.run(work)


@command.command()
@one
@click.option("--at", type=click.IntRange(1), default=None, metavar="SEQ", help="Up to this event; else all of it.")
@json_option
@click.pass_obj
def fork(door: Door, session: str, at: int | None, *, as_json: bool) -> int:
    """Copy a session, up to an event, into a new one. Prints the new id."""

    async def work(app: App) -> int:
        summary = await session_named(app.runtime, session, "sylph session fork")
        forked = await app.runtime.fork(summary.id, at=at)
        return done(forked, forked, as_json=as_json)

    return door.run(work)


@command.command()
@one
@json_option
@click.pass_obj
def tree(door: Door, session: str, *, as_json: bool) -> int:
    """Draw which session was forked from which."""

    async def work(app: App) -> int:
        found = await app.runtime.sessions()
        if session:
            root = (await find(app.runtime, session)).root
            found = [each for each in found if each.root == root]
        if as_json:
            return put_json([{key: value for key, value in facts_of(each).items() if key in TREE} for each in found])
        put("\n".join(drawn(found)) or "No sessions yet.")
        return 0

    return door.look(work)


@command.command()
@one
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@click.pass_obj
def export(door: Door, session: str, output: Path | None) -> int:
    """Write a session as NDJSON: whole, with its hashes, ready for `session import`."""

    async def work(app: App) -> int:
        summary = await session_named(app.runtime, session, "sylph session export")
        rows = [row async for row in app.runtime.export(summary.id)]
        if output is None:
            sys.stdout.buffer.writelines(rows)
            sys.stdout.buffer.flush()
            return 0
        write_new(output, rows)
        put(f"{output}: {count(summary.seq, 'event')}")
        return 0

    return door.look(work)


@command.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--new-id", is_flag=True, help="As a session of its own, under a new id.")
@click.pass_obj
def import_(door: Door, file: Any, *, new_id: bool) -> int:
    """Bring in an exported session; `-` reads stdin. Prints its id."""

    async def work(app: App) -> int:
        done = await app.runtime.import_(file, new_id=new_id)
        put(done.session)
        sys.stderr.write("It was here already.\n" if done.known else f"{count(done.events, 'event')} brought in.\n")
        return 0

    return door.run(work)


TREE = frozenset({"id", "title", "parent", "forked_at", "turns", "updated"})
SHOWN = (
    *(
        "id",
        "title",
        "workspace",
        "model",
        "mode",
        "sandbox",
        "state",
        "created",
        "updated",
        "seq",
        "turns",
        "open_turn",
    ),
    *(
        "asked",
        "queue",
        "usage",
        "cost",
        "guessed",
        "budget",
        "label",
        "context_tokens",
        "window",
        "parent",
        "forked_at",
        "deleted",
        "archived",
        "pinned",
        "plan",
        "pid",
    ),
)


def facts_of(summary: Summary) -> dict[str, Any]:
    """A session as `--json` shows it. These names are kept; others of the fold may change."""
    level = gauge.level(summary.context_tokens, summary.window)
    return {**{name: msgspec.to_builtins(getattr(summary, name)) for name in SHOWN}, "context_level": level}


def row(summary: Summary) -> list[str]:
    state = "interrupted" if is_interrupted(summary) else summary.state
    changed = ago(summary.updated, SystemClock().now())
    return [
        summary.id,
        ("* " if summary.pinned else "") + (flat(summary.title, 44) or "-"),
        state,
        str(summary.turns),
        money(summary.cost) or "-",
        flat(summary.model, 30),
        changed,
    ]


def heading(summary: Summary) -> list[str]:
    sums = spent(summary.usage, summary.cost) or "no tokens"
    return [
        f"{summary.id}  {flat(summary.title)}",
        f"{summary.workspace}  {summary.model}  mode {summary.mode}  {summary.state}"
        + (f"  {off}" if (off := switched_off(summary)) else ""),
        f"{count(summary.turns, 'turn')}, {count(summary.seq, 'event')}, {sums}",
    ]


async def budgets(app: App, summary: Summary) -> list[str]:
    """How the budgets of the session stand, if it has any."""
    stands = await app.budgets(summary)
    own = [each for each in stands if each[0].scope in ("session", "tree", "label")]
    return [f"budget of {allowance.name_of(row)}: {allowance.line_of(row)}" for row in allowance.rows(own)]


async def all_events(runtime: Runtime, session: str) -> list[Event]:
    events: list[Event] = []
    while page := await runtime.read(session, after=events[-1].seq if events else 0, limit=PAGE):
        events += page
    return events


async def whole_outputs(runtime: Runtime, session: str, events: list[Event]) -> dict[str, str]:
    calls = [event.body.call for event in events if isinstance(event.body, ToolFinished) and event.body.whole]
    return {call: await runtime.whole(session, call) or "" for call in calls}


def confirmed(question: str) -> bool:
    return sys.stdin.isatty() and click.confirm(question, err=True)
