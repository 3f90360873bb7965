"""`sylph session …`: what was talked about, and what can be done with it."""

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from sylph.app import App
from sylph.core.clock import SystemClock
from sylph.core.commands import Delete, Rename, Restore
from sylph.core.errors import UserError
from sylph.core.events import Event, encode_event
from sylph.core.facts.tool_call import ToolFinished
from sylph.core.text import window_usage
from sylph.core.text.formatting import count_noun
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.cli.commands import resume
from sylph.interfaces.cli.commands.session import archive, search
from sylph.interfaces.cli.commands.session.fork_tree import draw_fork_tree
from sylph.interfaces.cli.kit.cli_context import (
    CliContext,
    print_json,
    print_result,
    print_table,
    print_text,
    write_new_file,
)
from sylph.interfaces.cli.kit.colours import paint_lines
from sylph.interfaces.cli.kit.lazy_commands import SuggestingGroup
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import (
    complete_session_ids,
    find_or_pick_session,
    find_session,
    started_sessions,
)
from sylph.interfaces.text import budget_text
from sylph.interfaces.text.interrupted_turn import is_interrupted
from sylph.interfaces.text.render import format_age, format_money, format_usage, one_line
from sylph.interfaces.text.sandbox_notice import sandbox_off_notice
from sylph.interfaces.text.transcript import event_rows, render_transcript

PAGE = 1000
LIST_DELETED = ("sylph session list --deleted",)
session_argument = click.argument("session", required=False, default="", shell_complete=complete_session_ids)


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Look at sessions and change them. SESSION is an id, the start of one, or `last`."""


command.add_command(resume.command, "resume")
command.add_command(search.command, "search")
command.add_command(archive.archive, "archive")
command.add_command(archive.unarchive, "unarchive")
command.add_command(archive.pin, "pin")
command.add_command(archive.unpin, "unpin")


@command.command("list")
@click.option("--deleted", is_flag=True, help="Those in the trash instead.")
@click.option("--archived", is_flag=True, help="Those put aside instead.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most this many.")
@json_option
@click.pass_obj
def list_sessions(cli: CliContext, *, deleted: bool, archived: bool, limit: int, as_json: bool) -> int:
    """List sessions, the pinned ones first, then the latest."""
    found = cli.run_read_only(lambda app: started_sessions(app.runtime, deleted=deleted))
    found = [each for each in found if deleted or each.archived == archived]
    found.sort(key=lambda each: not each.pinned)
    if as_json:
        return print_json([session_facts(summary) for summary in found[:limit]])
    if not found:
        print_text("The trash is empty." if deleted else "No session is put aside." if archived else "No sessions yet.")
        return 0
    head = ["ID", "TITLE", "STATE", "TURNS", "COST", "MODEL", "CHANGED"]
    print_table([head, *map(session_row, found[:limit])], drop=(4, 5, 3, 6, 2))
    if len(found) > limit:
        print_text(f"… and {len(found) - limit} more (--limit)")
    return 0


@command.command()
@session_argument
@click.option("--events", is_flag=True, help="Every event, as a table.")
@click.option("--full", is_flag=True, help="Whole outputs instead of their first lines.")
@click.option("--diff", is_flag=True, help="What each turn changed in files, line by line.")
@json_option
@click.pass_obj
def show(cli: CliContext, session: str, *, events: bool, full: bool, diff: bool, as_json: bool) -> int:
    """Show a session: what was said and done, which files each turn changed, and what it cost."""

    async def work(app: App) -> int:
        summary = await find_or_pick_session(app.runtime, session, "sylph session show")
        read = await read_all_events(app.runtime, summary.id)
        if as_json and events:
            sys.stdout.writelines(encode_event(event).decode() + "\n" for event in read)
        elif as_json:
            stands = list(budget_text.budget_rows(await app.budget_balances(summary)))
            print_json(
                {**session_facts(summary), "changes": await app.runtime.list_changes(summary.id), "budgets": stands}
            )
        elif events:
            print_table([["SEQ", "TIME", "TURN", "TYPE", "ACTOR", "DATA"], *event_rows(read)], drop=(5, 4, 1))
        else:
            wholes = await read_full_outputs(app.runtime, summary.id, read) if full else None
            print_text("\n".join([*heading_lines(summary), *await budget_lines(app, summary)]))
            colour = sys.stdout.isatty() and app.config.terminal.colour
            turns = await app.runtime.list_changes(summary.id)
            print_text(paint_lines(render_transcript(read, wholes, turns, diff=diff), colour=colour).rstrip("\n"))
        return 0

    return cli.run_read_only(work)


@command.command()
@click.argument("session", shell_complete=complete_session_ids)
@click.argument("title", nargs=-1, required=True)
@json_option
@click.pass_obj
def rename(cli: CliContext, session: str, title: tuple[str, ...], *, as_json: bool) -> int:
    """Give a session another title."""

    async def work(app: App) -> int:
        summary, named = await find_session(app.runtime, session), one_line(" ".join(title), 200)
        await app.runtime.send(summary.id, Rename(title=named))
        return print_result(f"{summary.id}  {named}", summary.id, as_json=as_json, title=named)

    return cli.run(work)


@command.command()
@session_argument
@click.option("--forever", is_flag=True, help="Remove it for good instead of putting it into the trash.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete(cli: CliContext, session: str, *, forever: bool, yes: bool, as_json: bool) -> int:
    """Put a session into the trash; `session restore` brings it back."""

    async def work(app: App) -> int:
        summary = await find_or_pick_session(app.runtime, session, "sylph session delete")
        if not forever:
            await app.runtime.send(summary.id, Delete())
            said = f"{summary.id} is in the trash. Bring it back: sylph session restore {summary.id}"
            return print_result(said, summary.id, as_json=as_json, forever=False)
        if not yes and not confirm_action(f"Remove {summary.id} ({one_line(summary.title)}) for good?"):
            raise UserError("Nothing was removed.", kind="refused", next=["--yes does not ask"])
        await app.runtime.purge_session(summary.id)
        return print_result(f"{summary.id} is gone.", summary.id, as_json=as_json, forever=True)

    return cli.run(work)


@command.command()
@session_argument
@json_option
@click.pass_obj
def restore(cli: CliContext, session: str, *, as_json: bool) -> int:
    """Bring a session back from the trash; `last` is the one that was deleted last."""

    async def work(app: App) -> int:
        summary = await find_or_pick_session(app.runtime, session, "sylph session restore", deleted=True)
        if not summary.deleted:
            raise UserError(f"{summary.id} is not in the trash.", kind="wrong_state", next=LIST_DELETED)
        await app.runtime.send(summary.id, Restore())
        return print_result(f"{summary.id} is back.", summary.id, as_json=as_json)

    return cli.run(work)


@command.command()
@session_argument
@click.option("--at", type=click.IntRange(1), default=None, metavar="SEQ", help="Up to this event; else all of it.")
@json_option
@click.pass_obj
def fork(cli: CliContext, session: str, at: int | None, *, as_json: bool) -> int:
    """Copy a session, up to an event, into a new one. Prints the new id."""

    async def work(app: App) -> int:
        summary = await find_or_pick_session(app.runtime, session, "sylph session fork")
        forked = await app.runtime.fork_session(summary.id, at=at)
        return print_result(forked, forked, as_json=as_json)

    return cli.run(work)


@command.command()
@session_argument
@json_option
@click.pass_obj
def tree(cli: CliContext, session: str, *, as_json: bool) -> int:
    """Draw which session was forked from which."""

    async def work(app: App) -> int:
        found = await app.runtime.list_sessions()
        if session:
            root = (await find_session(app.runtime, session)).root
            found = [each for each in found if each.root == root]
        if as_json:
            return print_json(
                [{key: value for key, value in session_facts(each).items() if key in TREE_FIELDS} for each in found]
            )
        print_text("\n".join(draw_fork_tree(found)) or "No sessions yet.")
        return 0

    return cli.run_read_only(work)


@command.command()
@session_argument
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@click.pass_obj
def export(cli: CliContext, session: str, output: Path | None) -> int:
    """Write a session as NDJSON: whole, with its hashes, ready for `session import`."""

    async def work(app: App) -> int:
        summary = await find_or_pick_session(app.runtime, session, "sylph session export")
        rows = [row async for row in app.runtime.export_session(summary.id)]
        if output is None:
            sys.stdout.buffer.writelines(rows)
            sys.stdout.buffer.flush()
            return 0
        write_new_file(output, rows)
        print_text(f"{output}: {count_noun(summary.seq, 'event')}")
        return 0

    return cli.run_read_only(work)


@command.command("import")
@click.argument("file", type=click.File("rb"))
@click.option("--new-id", is_flag=True, help="As a session of its own, under a new id.")
@click.pass_obj
def import_session(cli: CliContext, file: Any, *, new_id: bool) -> int:
    """Bring in an exported session; `-` reads stdin. Prints its id."""

    async def work(app: App) -> int:
        done = await app.runtime.import_session(file, new_id=new_id)
        print_text(done.session)
        sys.stderr.write(
            "It was here already.\n" if done.known else f"{count_noun(done.events, 'event')} brought in.\n"
        )
        return 0

    return cli.run(work)


TREE_FIELDS = frozenset({"id", "title", "parent", "forked_at", "turns", "updated"})
JSON_FIELDS = (
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


def session_facts(summary: SessionState) -> dict[str, Any]:
    """A session as `--json` shows it. These names are kept; others of the fold may change."""
    level = window_usage.window_level(summary.context_tokens, summary.window)
    return {**{name: msgspec.to_builtins(getattr(summary, name)) for name in JSON_FIELDS}, "context_level": level}


def session_row(summary: SessionState) -> list[str]:
    state = "interrupted" if is_interrupted(summary) else summary.state
    changed = format_age(summary.updated, SystemClock().now())
    return [
        summary.id,
        ("* " if summary.pinned else "") + (one_line(summary.title, 44) or "-"),
        state,
        str(summary.turns),
        format_money(summary.cost) or "-",
        one_line(summary.model, 30),
        changed,
    ]


def heading_lines(summary: SessionState) -> list[str]:
    sums = format_usage(summary.usage, summary.cost) or "no tokens"
    return [
        f"{summary.id}  {one_line(summary.title)}",
        f"{summary.workspace}  {summary.model}  mode {summary.mode}  {summary.state}"
        + (f"  {off}" if (off := sandbox_off_notice(summary)) else ""),
        f"{count_noun(summary.turns, 'turn')}, {count_noun(summary.seq, 'event')}, {sums}",
    ]


async def budget_lines(app: App, summary: SessionState) -> list[str]:
    """How the budgets of the session stand, if it has any."""
    stands = await app.budget_balances(summary)
    own = [each for each in stands if each[0].scope in ("session", "tree", "label")]
    return [
        f"budget of {budget_text.budget_name(row)}: {budget_text.budget_line(row)}"
        for row in budget_text.budget_rows(own)
    ]


async def read_all_events(runtime: Runtime, session: str) -> list[Event]:
    events: list[Event] = []
    while page := await runtime.read_events(session, after=events[-1].seq if events else 0, limit=PAGE):
        events += page
    return events


async def read_full_outputs(runtime: Runtime, session: str, events: list[Event]) -> dict[str, str]:
    calls = [event.body.call for event in events if isinstance(event.body, ToolFinished) and event.body.whole]
    return {call: await runtime.full_output(session, call) or "" for call in calls}


def confirm_action(question: str) -> bool:
    return sys.stdin.isatty() and click.confirm(question, err=True)
