"""`sylph chat`: a conversation in the terminal."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from sylph.app import App
from sylph.core.errors import ErrorReport, SylphError
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.cli.chat import slash_commands
from sylph.interfaces.cli.chat.conversation import ChatFrontend, TerminalChat
from sylph.interfaces.cli.chat.greeting import greeting_lines
from sylph.interfaces.cli.chat.line_frontend import LineFrontend
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext
from sylph.interfaces.cli.kit.options import TaskOptions, task_options
from sylph.interfaces.cli.terminal.interrupts import catch_signals
from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.cli.turn.follower import run_in_background
from sylph.interfaces.cli.turn.open_session import find_named_session
from sylph.interfaces.cli.turn.running_jobs import running_job_lines
from sylph.interfaces.text.render import error_lines, styled_line


@click.command()
@task_options("as_json", "key", "attach")
@click.pass_obj
def command(cli: CliContext, **told: Any) -> int:
    """Talk with Sylph. `/help` in the chat lists what can be typed."""
    options = TaskOptions(**told)
    return cli.run(lambda app: start_chat(app, options))


async def start_chat(app: App, options: TaskOptions) -> int:
    """The chat, in the session that the options name or in a new one."""
    if options.session:
        return await open_chat(app, options, await find_named_session(app, options))
    # Chosen now, so that a missing model is told before anything is typed.
    return await open_chat(app, replace(options, model=await app.choose_model(options.model)))


async def open_chat(app: App, options: TaskOptions, summary: SessionState | None = None) -> int:
    app.unlock_credentials(summary.model if summary else options.model)
    chat = TerminalChat(app, choose_frontend(app, quiet=options.quiet), options)
    folder = Path(summary.workspace) if summary else (options.cwd or Path()).resolve()
    if not options.quiet:
        chat.front.print_lines(await greeting_lines(chat, folder, summary))
    code = await run_chat(chat, summary)
    if chat.now.id and (left := await app.await_deliveries(chat.now.id)):
        chat.front.print_lines([styled_line(left, "warn")])
    if chat.now.inputs and not options.quiet:
        chat.front.print_lines(
            [
                *running_job_lines(app.runtime, chat.now.id),
                styled_line(f"{chat.now.id} · sylph resume {chat.now.id}", "dim"),
            ]
        )
    return code


async def run_chat(chat: TerminalChat, summary: SessionState | None = None) -> int:
    """Talks until the person leaves; returns the exit code."""
    caught: asyncio.Queue[int] = asyncio.Queue()
    with catch_signals(caught.put_nowait):
        async with chat, run_in_background(chat.handle_signals(caught)):
            if summary:
                await chat.enter_session(summary)
            async for text in chat.front.read_lines(chat):
                try:
                    await handle_line(chat, text)
                except SylphError as error:
                    chat.front.print_lines(list(error_lines(_redact_error(chat, error.trouble))))
                except slash_commands.LeaveChat:
                    break
            if chat.terminated:
                await chat.stop_turn()
                await chat.wait_idle()
    if chat.lost:
        return exit_code.FAILED.number
    return exit_code.TERMINATED.number if chat.terminated else 0


async def handle_line(chat: TerminalChat, text: str) -> None:
    """A line from the person: a slash command, an answer, or something to say."""
    # A command may begin with a slash.
    if text.lstrip().startswith("/") and not chat.replies.is_editing(chat.open_question):
        await slash_commands.run_slash_command(chat, text.strip())
    elif chat.open_question:
        await chat.answer_question(chat.open_question, text)
    elif chat.is_running and chat.replies.is_echo(text):
        chat.front.print_lines([styled_line("No question is open any more: this was not sent.", "dim")])
    elif text.strip():
        await chat.send_message(text)


def _redact_error(chat: TerminalChat, trouble: ErrorReport) -> ErrorReport:
    """What went wrong with a line often repeats the line."""
    hide = chat.app.runtime.redactor.redact_text
    return replace(trouble, message=hide(trouble.message), next=tuple(map(hide, trouble.next)))


def choose_frontend(app: App, *, quiet: bool = False) -> ChatFrontend:
    """A full terminal gets the editor, anything else plain lines."""
    terminal = app.config.terminal
    if sys.stdin.isatty() and sys.stdout.isatty() and not terminal.dumb:
        from sylph.engine.redact.input_history import InputHistory
        from sylph.interfaces.actions.identity_files import move_legacy_versions
        from sylph.interfaces.cli.chat.editor_frontend import EditorFrontend

        move_legacy_versions(app.config)

        return EditorFrontend(InputHistory(app.config.home / "history", app.runtime.redactor), colour=terminal.colour)
    return LineFrontend(TerminalScreen(sys.stdout, sys.stderr, colour=terminal.colour, quiet=quiet, dumb=terminal.dumb))
