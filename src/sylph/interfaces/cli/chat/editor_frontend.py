"""The chat in a full terminal: a line to write on stays at the bottom while the turn is told above it."""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from sylph.engine.redact.input_history import InputHistory
from sylph.interfaces.cli.chat.conversation import TerminalChat
from sylph.interfaces.cli.chat.key_bindings import SlashCompleter, make_bindings
from sylph.interfaces.cli.kit.colours import paint_lines
from sylph.interfaces.cli.terminal.screen import SPINNER_FRAMES
from sylph.interfaces.cli.terminal.wrap import RowWrapper, wrap_line
from sylph.interfaces.text.render import StyledLine, TextSpan, styled_line
from sylph.interfaces.text.turn_presenter import (
    AnswerChunk,
    AnswerText,
    BellRang,
    BusyChanged,
    CallBegan,
    CallEnded,
    ChunksLost,
    DisplayEvent,
    NoticeShown,
    StreamBroken,
    TurnConcluded,
    turn_end_lines,
)

STYLE = Style.from_dict({"hint": "fg:ansibrightblack"})
# Printing above the prompt takes the prompt away and draws it again, so pieces are gathered for a moment.
GATHER_SECONDS = 0.03


class PromptHistory(History):
    """What the arrow keys bring back: of this chat as it was typed, of earlier ones as it was kept."""

    def __init__(self, typed: InputHistory) -> None:
        super().__init__()
        self._typed = typed

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._typed.load_entries())

    def store_string(self, string: str) -> None:
        self._typed.append(string)


class EditorFrontend:
    """Shows acts above a prompt that can be typed into all the time."""

    person = True

    def __init__(self, typed: InputHistory, *, colour: bool = True) -> None:
        self._history = PromptHistory(typed)
        self._colour = colour
        self._rows = RowWrapper()
        self._printed = ""
        self._printing: asyncio.TimerHandle | None = None
        self._busy = ""
        self._leaving = False
        self._session: PromptSession[str] | None = None

    async def read_lines(self, chat: TerminalChat) -> AsyncGenerator[str, None]:
        session = self._session = self._open_prompt(chat)
        while not self._leaving:
            try:
                text = await session.prompt_async(refresh_interval=0.2, handle_sigint=False)
            except EOFError:
                if self._leaving or chat.may_leave():
                    break
                continue
            self._echo_input(chat.prompt, text.rstrip())
            yield text.rstrip()
        self._flush_output()

    def close(self) -> None:
        self._leaving = True
        if self._session and self._session.app.is_running:
            self._session.app.exit(exception=EOFError)

    def display(self, act: DisplayEvent) -> None:
        match act:
            case AnswerChunk(text=text):
                self._queue_output(self._rows.add(text, _terminal_columns()))
                self._busy = "writing"
            case ChunksLost():
                self._rows.stream.mark_lost()
            case StreamBroken():
                self._queue_output(self._rows.end_row())
                self._rows.stream.reset()
                self._busy = ""
            case AnswerText(text=text):
                self._queue_output(self._rows.finish(text, _terminal_columns()))
                self._busy = ""
            case CallBegan(title=title) | BusyChanged(label=title):
                self._busy = title
            case CallEnded(title=title, mark=mark, more=more):
                self.print_lines([(TextSpan(f"▸ {title}  ", "code"), *mark), *more])
                self._busy = ""
            case NoticeShown(lines=lines):
                self.print_lines(list(lines))
            case BellRang():
                self._queue_output("\a")
            case TurnConcluded(sums=sums):
                self._queue_output(self._rows.end_row())
                self._rows.stream.reset()
                self.print_lines([*turn_end_lines(act), styled_line(sums, "dim")])
                self._busy = ""
        self._redraw_prompt()

    def print_lines(self, lines: list[StyledLine]) -> None:
        """Lines above the prompt. A word that is just being written is not cut by them."""
        rows = [row for each in lines for row in wrap_line(each, _terminal_columns())]
        if rows:
            self._queue_output(self._rows.break_row() + paint_lines(rows, colour=self._colour))

    def show_question(self, prompt: str, lines: list[StyledLine]) -> None:  # noqa: ARG002 - it stands above the line to write on
        self.print_lines(lines)

    def _echo_input(self, prompt: str, text: str) -> None:
        first, *rest = text.split("\n")
        self.print_lines(
            [(TextSpan(prompt, "bold"), TextSpan(first)), *(styled_line(f"{' ' * len(prompt)}{row}") for row in rest)]
        )

    def _open_prompt(self, chat: TerminalChat) -> PromptSession[str]:
        output = Vt100_Output.from_pty(sys.stdout)
        # Asking the terminal where its cursor is takes a round trip, and some never answer.
        output.enable_cpr = False
        return PromptSession(
            lambda: self._prompt_parts(chat),
            history=self._history,
            completer=SlashCompleter(),
            complete_while_typing=Condition(self._is_slash_input),
            key_bindings=make_bindings(chat),
            multiline=True,
            prompt_continuation="  ",
            rprompt=lambda: self._right_prompt(chat),
            reserve_space_for_menu=4,
            style=STYLE,
            erase_when_done=True,
            output=output,
        )

    def _right_prompt(self, chat: TerminalChat) -> StyleAndTextTuples:
        """Where we are, at the right of the prompt: only while nothing else stands above it on that row."""
        return [("class:hint", "" if chat.is_running or self._rows.open else chat.status_line)]

    def _is_slash_input(self) -> bool:
        return self._session is not None and self._session.default_buffer.text.startswith("/")

    def _prompt_parts(self, chat: TerminalChat) -> StyleAndTextTuples:
        """The row that still grows, what is going on, what is asked, and where to write."""
        parts: StyleAndTextTuples = []
        if self._rows.open:
            parts.append(("", f"{self._rows.open}\n"))
        if chat.open_question and not chat.away:
            parts.append(("bold", f"{chat.prompt_text(_terminal_columns())}\n"))
        elif chat.is_running and not chat.away:
            frame = SPINNER_FRAMES[int(time.monotonic() * 5) % len(SPINNER_FRAMES)]
            parts.append(("class:hint", f"{frame} {self._busy or chat.now.state}"[: _terminal_columns() - 1] + "\n"))
        return [*parts, ("bold", chat.prompt)]

    def _queue_output(self, text: str) -> None:
        if not text:
            return
        self._printed += text
        if not (self._session and self._session.app.is_running):
            self._flush_output()
        elif self._printing is None:
            self._printing = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._flush_output)

    def _flush_output(self) -> None:
        self._printing = None
        text, self._printed = self._printed, ""
        if not text:
            return
        if not (self._session and self._session.app.is_running):
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        # Not `run_in_terminal`: that gives the keyboard back to the terminal for a moment, and keys get lost.
        app = self._session.app
        app.renderer.erase()
        app.output.write_raw(text)
        app.output.flush()
        app.invalidate()

    def _redraw_prompt(self) -> None:
        if self._session and self._session.app.is_running:
            self._session.app.invalidate()


def _terminal_columns() -> int:
    return shutil.get_terminal_size().columns
