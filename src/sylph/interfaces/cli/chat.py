"""`sylph chat`: a conversation in the terminal."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from sylph.app import App
from sylph.core.errors import SylphError, Trouble
from sylph.engine.summary import Summary
from sylph.interfaces.cli import codes, slash
from sylph.interfaces.cli.conversation import Chat, Front
from sylph.interfaces.cli.door import Door
from sylph.interfaces.cli.follow import beside
from sylph.interfaces.cli.interrupts import heard
from sylph.interfaces.cli.lines import Lines
from sylph.interfaces.cli.ongoing import ongoing
from sylph.interfaces.cli.options import Options, work
from sylph.interfaces.cli.recap import greeting
from sylph.interfaces.cli.run import named
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.render import line, trouble_lines


@click.command()
@work("as_json", "key", "attach")
@click.pass_obj
def command(door: Door, **told: Any) -> int:
    """Talk with Sylph. `/help` in the chat lists what can be typed."""
    options = Options(**told)
    return door.run(lambda app: converse(app, options))


async def converse(app: App, options: Options) -> int:
    """The chat, in the session that the options name or in a new one."""
    if options.session:
        return await open_chat(app, options, await named(app, options))
    # Chosen now, so that a missing model is told before anything is typed.
    return await open_chat(app, replace(options, model=await app.choose(options.model)))


async def open_chat(app: App, options: Options, summary: Summary | None = None) -> int:
    app.unlock(summary.model if summary else options.model)
    chat = Chat(app, front_for(app, quiet=options.quiet), options)
    folder = Path(summary.workspace) if summary else (options.cwd or Path()).resolve()
    if not options.quiet:
        chat.front.note(await greeting(chat, folder, summary))
    code = await talk(chat, summary)
    if chat.now.id and (left := await app.delivered(chat.now.id)):
        chat.front.note([line(left, "warn")])
    if chat.now.inputs and not options.quiet:
        chat.front.note(
            [*ongoing(app.runtime, chat.now.id), line(f"{chat.now.id} · sylph resume {chat.now.id}", "dim")]
        )
    return code


async def talk(chat: Chat, summary: Summary | None = None) -> int:
    """Talks until the person leaves; returns the exit code."""
    caught: asyncio.Queue[int] = asyncio.Queue()
    with heard(caught.put_nowait):
        async with chat, beside(chat.signals(caught)):
            if summary:
                await chat.enter(summary)
            async for text in chat.front.lines(chat):
                try:
                    await hear(chat, text)
                except SylphError as error:
                    chat.front.note(list(trouble_lines(_discreet(chat, error.trouble))))
                except slash.Leave:
                    break
            if chat.terminated:
                await chat.stop()
                await chat.rest()
    if chat.lost:
        return codes.FAILED.number
    return codes.TERMINATED.number if chat.terminated else 0


async def hear(chat: Chat, text: str) -> None:
    """A line from the person: a slash command, an answer, or something to say."""
    # A command may begin with a slash.
    if text.lstrip().startswith("/") and not chat.replies.editing(chat.asked):
        await slash.run(chat, text.strip())
    elif chat.asked:
        await chat.answer(chat.asked, text)
    elif chat.running and chat.replies.is_echo(text):
        chat.front.note([line("No question is open any more: this was not sent.", "dim")])
    elif text.strip():
        await chat.say(text)


def _discreet(chat: Chat, trouble: Trouble) -> Trouble:
    """What went wrong with a line often repeats the line."""
    hide = chat.app.runtime.veil.text
    return replace(trouble, message=hide(trouble.message), next=tuple(map(hide, trouble.next)))


def front_for(app: App, *, quiet: bool = False) -> Front:
    """A full terminal gets the editor, anything else plain lines."""
    terminal = app.config.terminal
    if sys.stdin.isatty() and sys.stdout.isatty() and not terminal.dumb:
        from sylph.engine.redact.typed import Typed
        from sylph.interfaces.cli.editor import Editor
        from sylph.interfaces.written import settle

        settle(app.config)

        return Editor(Typed(app.config.home / "history", app.runtime.veil), colour=terminal.colour)
    return Lines(Screen(sys.stdout, sys.stderr, colour=terminal.colour, quiet=quiet, dumb=terminal.dumb))
