"""Slash commands: one registry that drives /help, completion and the handbook."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

import click
from msgspec import Struct

from sylph.core import commands
from sylph.core.clock import SystemClock
from sylph.core.errors import UserError
from sylph.core.permission.types import Mode
from sylph.core.text import window_usage
from sylph.core.text.formatting import count_noun
from sylph.core.text.suggestion import suggest_word
from sylph.engine.folds.session_state import SessionState
from sylph.engine.model.routes import FALLBACK, ROLES
from sylph.interfaces.cli.chat.conversation import TerminalChat
from sylph.interfaces.cli.chat.greeting import recap_lines
from sylph.interfaces.cli.kit.attachment_files import read_attachments
from sylph.interfaces.cli.kit.cli_context import write_new_file
from sylph.interfaces.cli.kit.options import DollarsParam
from sylph.interfaces.cli.kit.table import align_rows
from sylph.interfaces.cli.terminal import session_picker
from sylph.interfaces.text import budget_text
from sylph.interfaces.text.file_changes import restored_lines
from sylph.interfaces.text.render import format_age, format_usage, one_line, plan_lines, styled_line
from sylph.interfaces.text.sandbox_notice import sandbox_layer, sandbox_off_notice

KEY_HELP = (
    "Enter sends. Alt-Enter, a \\ at the end of the line, or an open ``` block go on below.",
    "What you type while a turn runs steers it. Ctrl-C stops the turn; Ctrl-D leaves.",
)


class LeaveChat(Exception):
    """The chat is over."""


class SlashCommand(Struct, frozen=True):
    """One command. `hint` names its argument."""

    name: str
    hint: str
    help: str
    run: Callable[[TerminalChat, str], Awaitable[None]]

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.hint}".rstrip()


async def run_slash_command(chat: TerminalChat, text: str) -> None:
    """Runs the slash command in `text`. Raises UserError where there is none of that name."""
    name, _, argument = text[1:].partition(" ")
    found = COMMANDS.get(name.lower())
    if found is None:
        raise UserError(f"There is no /{name}.{suggest_word(name, COMMANDS)}", next=["/help"])
    await found.run(chat, argument.strip())


async def show_help(chat: TerminalChat, _: str) -> None:
    rows = align_rows([[f"  {each.usage}", each.help] for each in COMMANDS.values()])
    print_rows(chat, *rows, *KEY_HELP)


async def begin_session(chat: TerminalChat, _: str) -> None:
    require_idle(chat)
    await chat.leave_session()
    print_rows(chat, "A new session begins with what you say next.")


async def list_sessions(chat: TerminalChat, _: str) -> None:
    now = SystemClock().now()
    found = (await session_picker.started_sessions(chat.app.runtime))[:20]
    rows = [[f"  {one.id}", one_line(one.title, 50), one.state, format_age(one.updated, now)] for one in found]
    print_rows(chat, *(align_rows(rows) or ["There is no session yet."]))


async def resume_session(chat: TerminalChat, argument: str) -> None:
    require_idle(chat)
    summary = await session_picker.find_session(chat.app.runtime, argument or "last")
    chat.front.print_lines(await recap_lines(chat.app, summary))
    await chat.enter_session(summary)


async def change_model(chat: TerminalChat, argument: str) -> None:
    if not argument:
        print_rows(chat, f"model: {chat.model}")
        return
    chosen = await chat.app.choose_model(argument)
    chat.change_options(model=chosen)
    if chat.now.id:
        await chat.send_command(commands.SetModel(model=chosen))


async def change_role(chat: TerminalChat, argument: str) -> None:
    name, _, wanted = argument.partition(" ")
    if not name:
        now = {**chat.app.roles, **chat.now.roles}
        print_rows(
            chat, *(f"{each}: {now.get(each) or chat.model}" for each in ROLES if each not in ("embed", FALLBACK))
        )
        return
    require_session(chat)
    await chat.app.assign_roles(chat.now.id, [f"{name}={wanted.strip()}"])


async def change_mode(chat: TerminalChat, argument: str) -> None:
    known: dict[str, Mode] = {each: each for each in get_args(Mode)}
    if not argument:
        print_rows(chat, f"mode: {chat.mode}   ({', '.join(known)})")
        return
    if argument not in known:
        raise UserError(
            f"There is no mode {argument!r}.{suggest_word(argument, known)}", next=[f"/mode {' | '.join(known)}"]
        )
    chat.change_options(mode=known[argument])
    if chat.now.id:
        await chat.send_command(commands.SetMode(mode=known[argument]))


def context_text(summary: SessionState) -> str:
    told = f"{summary.context_tokens:,} of {f'{summary.window:,}' if summary.window else '?'} tokens"
    level = window_usage.window_level(summary.context_tokens, summary.window)
    return (
        f"{told}, {window_usage.window_percent(summary.context_tokens, summary.window)} % ({level})" if level else told
    )


async def show_status(chat: TerminalChat, _: str) -> None:
    summary = require_session(chat)
    rows = [
        ["  session", f"{summary.id}  {one_line(summary.title)}"],
        ["  model", summary.model],
        ["  mode", summary.mode],
        ["  sandbox", sandbox_off_notice(summary) or (layer.name if (layer := sandbox_layer(chat.app)) else "none")],
        ["  state", summary.state],
        ["  folder", summary.workspace],
        ["  context", context_text(summary)],
        ["  used", format_usage(summary.usage, summary.cost) or "nothing yet"],
    ]
    print_rows(chat, *align_rows(rows))


async def show_plan(chat: TerminalChat, _: str) -> None:
    summary = require_session(chat)
    chat.front.print_lines(plan_lines(summary.plan) or [styled_line("There is no plan.")])


async def show_cost(chat: TerminalChat, _: str) -> None:
    summary = require_session(chat)
    unknown = "" if summary.cost is not None else " (price not known: see `providers.NAME.models` in the handbook)"
    print_rows(
        chat,
        f"{count_noun(summary.turns, 'turn')}, {format_usage(summary.usage, summary.cost) or 'no tokens'}{unknown}",
    )


async def change_budget(chat: TerminalChat, argument: str) -> None:
    if not argument:
        stands = await chat.app.budget_balances(require_session(chat))
        rows = [
            [f"  {budget_text.budget_name(row)}", budget_text.budget_line(row)]
            for row in budget_text.budget_rows(stands)
        ]
        print_rows(chat, *(align_rows(rows) or ["There is no budget: /budget 0.50 sets one for this session."]))
        return
    try:
        wanted = DollarsParam().convert(argument, None, None)
    except click.BadParameter as error:
        raise UserError(error.message, next=["/budget 0.50", "/budget none"]) from error
    chat.change_options(budget=wanted)
    if chat.now.id:
        await chat.send_command(wanted)


async def compact_session(chat: TerminalChat, _: str) -> None:
    await chat.send_command(commands.Compact())


async def retry_turn(chat: TerminalChat, argument: str) -> None:
    await chat.send_command(commands.Retry(text=argument, dry_run=chat.options.dry_run))


async def fork_session(chat: TerminalChat, argument: str) -> None:
    require_idle(chat)
    if argument and not argument.isdecimal():
        raise UserError("A fork begins after an event's number.", next=["/fork", "/fork 42"])
    summary = require_session(chat)
    made = await chat.app.runtime.fork_session(summary.id, at=int(argument) if argument else None)
    await chat.enter_session(await chat.app.runtime.find_session(made))
    print_rows(chat, f"This is {made} now, a fork of {summary.id}.")


async def undo_turn(chat: TerminalChat, argument: str) -> None:
    require_idle(chat)
    summary = require_session(chat)
    wanted = "" if argument == "redo" else argument
    await chat.send_command(commands.Undo(turn=wanted, redo=argument == "redo"))
    restored = await chat.app.runtime.last_undo(summary.id)
    if restored:
        chat.front.print_lines(list(restored_lines(restored)))


async def rename_session(chat: TerminalChat, argument: str) -> None:
    if not argument:
        raise UserError("The new title is missing.", next=["/rename TITLE"])
    await chat.send_command(commands.Rename(title=argument))
    print_rows(chat, f"renamed: {one_line(argument)}")


async def attach_file(chat: TerminalChat, argument: str) -> None:
    file, _, text = argument.partition(" ")
    if not file:
        raise UserError("Which file?", next=["/attach FILE what to do with it"])
    files = read_attachments([file])
    await chat.send_message(text.strip() or f"Look at {files[0].name}.", files=files)


async def show_queue(chat: TerminalChat, argument: str) -> None:
    summary = require_session(chat)
    if argument:
        await chat.send_command(commands.Withdraw(id=argument.removeprefix("drop").strip()))
        return
    rows = [[f"  {id}", one_line(text)] for id, text in summary.queue.items()]
    print_rows(chat, *(align_rows(rows) or ["Nothing waits."]))


async def queue_follow_up(chat: TerminalChat, argument: str) -> None:
    if not argument:
        raise UserError("What is to be done afterwards is missing.", next=["/follow TEXT"])
    await chat.send_message(argument, delivery="follow")


async def stop_turn(chat: TerminalChat, _: str) -> None:
    await chat.send_command(commands.Interrupt(reason="stopped in the chat"))


async def pause_turn(chat: TerminalChat, _: str) -> None:
    await chat.send_command(commands.Pause())


async def continue_turn(chat: TerminalChat, _: str) -> None:
    await chat.send_command(commands.Continue())


async def export_session(chat: TerminalChat, argument: str) -> None:
    summary = require_session(chat)
    path = Path(argument or f"{summary.id}.ndjson")
    write_new_file(path, [row async for row in chat.app.runtime.export_session(summary.id)])
    print_rows(chat, f"written to {path}")


async def quit_chat(_chat: TerminalChat, _: str) -> None:
    raise LeaveChat


def print_rows(chat: TerminalChat, *rows: str) -> None:
    """What a command has to say. Its arguments may be in it, and secrets in those."""
    chat.front.print_lines([styled_line(chat.app.runtime.redactor.redact_text(row)) for row in rows])


def require_session(chat: TerminalChat) -> SessionState:
    if not chat.now.id:
        raise UserError("Nothing has been said yet.", next=["type what is to be done"])
    return chat.now


def require_idle(chat: TerminalChat) -> None:
    if chat.is_running:
        raise UserError("A turn is running.", next=["/stop", "wait until it is done"])


COMMANDS: dict[str, SlashCommand] = {
    each.name: each
    for each in (
        SlashCommand("help", "", "What can be typed here.", show_help),
        SlashCommand("new", "", "Begin a new session.", begin_session),
        SlashCommand("sessions", "", "List sessions.", list_sessions),
        SlashCommand("resume", "[ID]", "Go to another session, and on with its interrupted turn.", resume_session),
        SlashCommand("model", "[PROVIDER/MODEL]", "Show or change the model.", change_model),
        SlashCommand(
            "role", "[ROLE [PROVIDER/MODEL]]", "Show or change the model of a role in this session.", change_role
        ),
        SlashCommand("mode", "[MODE]", "Show or change what may be done without asking.", change_mode),
        SlashCommand("status", "", "This session: model, mode, state, context, cost.", show_status),
        SlashCommand("plan", "", "The agent's checklist.", show_plan),
        SlashCommand("cost", "", "Tokens and money so far.", show_cost),
        SlashCommand(
            "budget", "[DOLLARS|none]", "How the budgets stand; or the most this session may cost.", change_budget
        ),
        SlashCommand("compact", "", "Summarise what is old now.", compact_session),
        SlashCommand("retry", "[TEXT]", "Run the last turn again, with other words if you like.", retry_turn),
        SlashCommand(
            "undo", "[TURN|redo]", "Put files back as they were before the last turn; or take that back.", undo_turn
        ),
        SlashCommand("fork", "[SEQ]", "Go on in a copy of this session.", fork_session),
        SlashCommand("rename", "TITLE", "Give the session another title.", rename_session),
        SlashCommand("attach", "FILE [TEXT]", "Say something with a picture or a PDF to look at.", attach_file),
        SlashCommand("queue", "[drop ID]", "What waits for the running turn; or take one back.", show_queue),
        SlashCommand("follow", "TEXT", "Do this when the running turn is done.", queue_follow_up),
        SlashCommand("stop", "", "End the running turn.", stop_turn),
        SlashCommand("pause", "", "Hold the running turn at its next safe point.", pause_turn),
        SlashCommand("continue", "", "Let a paused or interrupted turn go on.", continue_turn),
        SlashCommand("export", "[FILE]", "Write the session to a file.", export_session),
        SlashCommand("quit", "", "Leave.", quit_chat),
    )
}
