"""Slash commands: one registry that drives /help, completion and the handbook."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

import click
from msgspec import Struct

from sylph.core import commands, gauge
from sylph.core.clock import SystemClock
from sylph.core.errors import UserError
from sylph.core.facts import Mode
from sylph.core.similar import guess
from sylph.core.text import count
from sylph.engine.routes import FALLBACK, ROLES
from sylph.engine.summary import Summary
from sylph.interfaces import allowance
from sylph.interfaces.changes import restored_lines
from sylph.interfaces.cli import picker
from sylph.interfaces.cli.attach import attached
from sylph.interfaces.cli.conversation import Chat
from sylph.interfaces.cli.door import write_new
from sylph.interfaces.cli.options import Dollars
from sylph.interfaces.cli.recap import recap
from sylph.interfaces.cli.table import aligned
from sylph.interfaces.confinement import layer_of, switched_off
from sylph.interfaces.render import ago, flat, line, plan_lines, spent

KEYS = (
    "Enter sends. Alt-Enter, a \\ at the end of the line, or an open ``` block go on below.",
    "What you type while a turn runs steers it. Ctrl-C stops the turn; Ctrl-D leaves.",
)


class Leave(Exception):
    """The chat is over."""


class Slash(Struct, frozen=True):
    """One command. `hint` names its argument."""

    name: str
    hint: str
    help: str
    run: Callable[[Chat, str], Awaitable[None]]

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.hint}".rstrip()


async def run(chat: Chat, text: str) -> None:
    """Runs the slash command in `text`. Raises UserError where there is none of that name."""
    name, _, argument = text[1:].partition(" ")
    found = COMMANDS.get(name.lower())
    if found is None:
        raise UserError(f"There is no /{name}.{guess(name, COMMANDS)}", next=["/help"])
    await found.run(chat, argument.strip())


async def help_(chat: Chat, _: str) -> None:
    rows = aligned([[f"  {each.usage}", each.help] for each in COMMANDS.values()])
    say(chat, *rows, *KEYS)


async def new(chat: Chat, _: str) -> None:
    must_rest(chat)
    await chat.leave()
    say(chat, "A new session begins with what you say next.")


async def sessions(chat: Chat, _: str) -> None:
    now = SystemClock().now()
    found = (await picker.begun(chat.app.runtime))[:20]
    rows = [[f"  {one.id}", flat(one.title, 50), one.state, ago(one.updated, now)] for one in found]
    say(chat, *(aligned(rows) or ["There is no session yet."]))


async def resume(chat: Chat, argument: str) -> None:
    must_rest(chat)
    summary = await picker.find(chat.app.runtime, argument or "last")
    chat.front.note(await recap(chat.app, summary))
    await chat.enter(summary)


async def model(chat: Chat, argument: str) -> None:
    if not argument:
        say(chat, f"model: {chat.model}")
        return
    chosen = await chat.app.choose(argument)
    chat.prefer(model=chosen)
    if chat.now.id:
        await chat.send(commands.SetModel(model=chosen))


async def role(chat: Chat, argument: str) -> None:
    name, _, wanted = argument.partition(" ")
    if not name:
        now = {**chat.app.roles, **chat.now.roles}
        say(chat, *(f"{each}: {now.get(each) or chat.model}" for each in ROLES if each not in ("embed", FALLBACK)))
        return
    begun(chat)
    await chat.app.assign(chat.now.id, [f"{name}={wanted.strip()}"])


async def mode(chat: Chat, argument: str) -> None:
    known: dict[str, Mode] = {each: each for each in get_args(Mode)}
    if not argument:
        say(chat, f"mode: {chat.mode}   ({', '.join(known)})")
        return
    if argument not in known:
        raise UserError(f"There is no mode {argument!r}.{guess(argument, known)}", next=[f"/mode {' | '.join(known)}"])
    chat.prefer(mode=known[argument])
    if chat.now.id:
        await chat.send(commands.SetMode(mode=known[argument]))


def context(summary: Summary) -> str:
    told = f"{summary.context_tokens:,} of {f'{summary.window:,}' if summary.window else '?'} tokens"
    level = gauge.level(summary.context_tokens, summary.window)
    return f"{told}, {gauge.percent(summary.context_tokens, summary.window)} % ({level})" if level else told


async def status(chat: Chat, _: str) -> None:
    summary = begun(chat)
    rows = [
        ["  session", f"{summary.id}  {flat(summary.title)}"],
        ["  model", summary.model],
        ["  mode", summary.mode],
        ["  sandbox", switched_off(summary) or (layer.name if (layer := layer_of(chat.app)) else "none")],
        ["  state", summary.state],
        ["  folder", summary.workspace],
        ["  context", context(summary)],
        ["  used", spent(summary.usage, summary.cost) or "nothing yet"],
    ]
    say(chat, *aligned(rows))


async def plan(chat: Chat, _: str) -> None:
    summary = begun(chat)
    chat.front.note(plan_lines(summary.plan) or [line("There is no plan.")])


async def cost(chat: Chat, _: str) -> None:
    summary = begun(chat)
    unknown = "" if summary.cost is not None else " (price not known: see `providers.NAME.models` in the handbook)"
    say(chat, f"{count(summary.turns, 'turn')}, {spent(summary.usage, summary.cost) or 'no tokens'}{unknown}")


async def budget(chat: Chat, argument: str) -> None:
    if not argument:
        stands = await chat.app.budgets(begun(chat))
        rows = [[f"  {allowance.name_of(row)}", allowance.line_of(row)] for row in allowance.rows(stands)]
        say(chat, *(aligned(rows) or ["There is no budget: /budget 0.50 sets one for this session."]))
        return
    try:
        wanted = Dollars().convert(argument, None, None)
    except click.BadParameter as error:
        raise UserError(error.message, next=["/budget 0.50", "/budget none"]) from error
    chat.prefer(budget=wanted)
    if chat.now.id:
        await chat.send(wanted)


async def compact(chat: Chat, _: str) -> None:
    await chat.send(commands.Compact())


async def retry(chat: Chat, argument: str) -> None:
    await chat.send(commands.Retry(text=argument, dry_run=chat.options.dry_run))


async def fork(chat: Chat, argument: str) -> None:
    must_rest(chat)
    if argument and not argument.isdecimal():
        raise UserError("A fork begins after an event's number.", next=["/fork", "/fork 42"])
    summary = begun(chat)
    made = await chat.app.runtime.fork(summary.id, at=int(argument) if argument else None)
    await chat.enter(await chat.app.runtime.find(made))
    say(chat, f"This is {made} now, a fork of {summary.id}.")


async def undo(chat: Chat, argument: str) -> None:
    must_rest(chat)
    summary = begun(chat)
    wanted = "" if argument == "redo" else argument
    await chat.send(commands.Undo(turn=wanted, redo=argument == "redo"))
    restored = await chat.app.runtime.last_undo(summary.id)
    if restored:
        chat.front.note(list(restored_lines(restored)))


async def rename(chat: Chat, argument: str) -> None:
    if not argument:
        raise UserError("The new title is missing.", next=["/rename TITLE"])
    await chat.send(commands.Rename(title=argument))
    say(chat, f"renamed: {flat(argument)}")


async def attach(chat: Chat, argument: str) -> None:
    file, _, text = argument.partition(" ")
    if not file:
        raise UserError("Which file?", next=["/attach FILE what to do with it"])
    files = attached([file])
    await chat.say(text.strip() or f"Look at {files[0].name}.", files=files)


async def queue(chat: Chat, argument: str) -> None:
    summary = begun(chat)
    if argument:
        await chat.send(commands.Withdraw(id=argument.removeprefix("drop").strip()))
        return
    rows = [[f"  {id}", flat(text)] for id, text in summary.queue.items()]
    say(chat, *(aligned(rows) or ["Nothing waits."]))


async def follow(chat: Chat, argument: str) -> None:
    if not argument:
        raise UserError("What is to be done afterwards is missing.", next=["/follow TEXT"])
    await chat.say(argument, delivery="follow")


async def stop(chat: Chat, _: str) -> None:
    await chat.send(commands.Interrupt(reason="stopped in the chat"))


async def pause(chat: Chat, _: str) -> None:
    await chat.send(commands.Pause())


async def continue_(chat: Chat, _: str) -> None:
    await chat.send(commands.Continue())


async def export(chat: Chat, argument: str) -> None:
    summary = begun(chat)
    path = Path(argument or f"{summary.id}.ndjson")
    write_new(path, [row async for row in chat.app.runtime.export(summary.id)])
    say(chat, f"written to {path}")


async def quit_(_chat: Chat, _: str) -> None:
    raise Leave


def say(chat: Chat, *rows: str) -> None:
    """What a command has to say. Its arguments may be in it, and secrets in those."""
    chat.front.note([line(chat.app.runtime.veil.text(row)) for row in rows])


def begun(chat: Chat) -> Summary:
    if not chat.now.id:
        raise UserError("Nothing has been said yet.", next=["type what is to be done"])
    return chat.now


def must_rest(chat: Chat) -> None:
    if chat.running:
        raise UserError("A turn is running.", next=["/stop", "wait until it is done"])


COMMANDS: dict[str, Slash] = {
    each.name: each
    for each in (
        Slash("help", "", "What can be typed here.", help_),
        Slash("new", "", "Begin a new session.", new),
        Slash("sessions", "", "List sessions.", sessions),
        Slash("resume", "[ID]", "Go to another session, and on with its interrupted turn.", resume),
        Slash("model", "[PROVIDER/MODEL]", "Show or change the model.", model),
        Slash("role", "[ROLE [PROVIDER/MODEL]]", "Show or change the model of a role in this session.", role),
        Slash("mode", "[MODE]", "Show or change what may be done without asking.", mode),
        Slash("status", "", "This session: model, mode, state, context, cost.", status),
        Slash("plan", "", "The agent's checklist.", plan),
        Slash("cost", "", "Tokens and money so far.", cost),
        Slash("budget", "[DOLLARS|none]", "How the budgets stand; or the most this session may cost.", budget),
        Slash("compact", "", "Summarise what is old now.", compact),
        Slash("retry", "[TEXT]", "Run the last turn again, with other words if you like.", retry),
        Slash("undo", "[TURN|redo]", "Put files back as they were before the last turn; or take that back.", undo),
        Slash("fork", "[SEQ]", "Go on in a copy of this session.", fork),
        Slash("rename", "TITLE", "Give the session another title.", rename),
        Slash("attach", "FILE [TEXT]", "Say something with a picture or a PDF to look at.", attach),
        Slash("queue", "[drop ID]", "What waits for the running turn; or take one back.", queue),
        Slash("follow", "TEXT", "Do this when the running turn is done.", follow),
        Slash("stop", "", "End the running turn.", stop),
        Slash("pause", "", "Hold the running turn at its next safe point.", pause),
        Slash("continue", "", "Let a paused or interrupted turn go on.", continue_),
        Slash("export", "[FILE]", "Write the session to a file.", export),
        Slash("quit", "", "Leave.", quit_),
    )
}
