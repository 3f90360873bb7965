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

from sylph.engine.redact.typed import Typed
from sylph.interfaces.cli.conversation import Chat
from sylph.interfaces.cli.keys import Completions, bindings
from sylph.interfaces.cli.paint import painted
from sylph.interfaces.cli.screen import FRAMES
from sylph.interfaces.cli.wrap import Rows, folded
from sylph.interfaces.narrate import Act, Began, Broke, Busy, Done, Ended, Lost, Piece, Rang, Said, Shown, end_lines
from sylph.interfaces.render import Line, Span, line

STYLE = Style.from_dict({"hint": "fg:ansibrightblack"})
# Printing above the prompt takes the prompt away and draws it again, so pieces are gathered for a moment.
GATHER = 0.03


class Recalled(History):
    """What the arrow keys bring back: of this chat as it was typed, of earlier ones as it was kept."""

    def __init__(self, typed: Typed) -> None:
        super().__init__()
        self._typed = typed

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._typed.texts())

    def store_string(self, string: str) -> None:
        self._typed.keep(string)


class Editor:
    """Shows acts above a prompt that can be typed into all the time."""

    person = True

    def __init__(self, typed: Typed, *, colour: bool = True) -> None:
        self._history = Recalled(typed)
        self._colour = colour
        self._rows = Rows()
        self._printed = ""
        self._printing: asyncio.TimerHandle | None = None
        self._busy = ""
        self._leaving = False
        self._session: PromptSession[str] | None = None

    async def lines(self, chat: Chat) -> AsyncGenerator[str, None]:
        session = self._session = self._open(chat)
        while not self._leaving:
            try:
                text = await session.prompt_async(refresh_interval=0.2, handle_sigint=False)
            except EOFError:
                if self._leaving or chat.may_leave():
                    break
                continue
            self._echo(chat.prompt, text.rstrip())
            yield text.rstrip()
        self._flush()

    def leave(self) -> None:
        self._leaving = True
        if self._session and self._session.app.is_running:
            self._session.app.exit(exception=EOFError)

    def perform(self, act: Act) -> None:
        match act:
            case Piece(text=text):
                self._print(self._rows.add(text, _columns()))
                self._busy = "writing"
            case Lost():
                self._rows.stream.lose()
            case Broke():
                self._print(self._rows.cut())
                self._rows.stream.forget()
                self._busy = ""
            case Said(text=text):
                self._print(self._rows.end(text, _columns()))
                self._busy = ""
            case Began(title=title) | Busy(label=title):
                self._busy = title
            case Done(title=title, mark=mark, more=more):
                self.note([(Span(f"▸ {title}  ", "code"), *mark), *more])
                self._busy = ""
            case Shown(lines=lines):
                self.note(list(lines))
            case Rang():
                self._print("\a")
            case Ended(sums=sums):
                self._print(self._rows.cut())
                self._rows.stream.forget()
                self.note([*end_lines(act), line(sums, "dim")])
                self._busy = ""
        self._redraw()

    def note(self, lines: list[Line]) -> None:
        """Lines above the prompt. A word that is just being written is not cut by them."""
        rows = [row for each in lines for row in folded(each, _columns())]
        if rows:
            self._print(self._rows.pause() + painted(rows, colour=self._colour))

    def ask(self, prompt: str, lines: list[Line]) -> None:  # noqa: ARG002 - it stands above the line to write on
        self.note(lines)

    def _echo(self, prompt: str, text: str) -> None:
        first, *rest = text.split("\n")
        self.note([(Span(prompt, "bold"), Span(first)), *(line(f"{' ' * len(prompt)}{row}") for row in rest)])

    def _open(self, chat: Chat) -> PromptSession[str]:
        output = Vt100_Output.from_pty(sys.stdout)
        # Asking the terminal where its cursor is takes a round trip, and some never answer.
        output.enable_cpr = False
        return PromptSession(
            lambda: self._prompt(chat),
            history=self._history,
            completer=Completions(),
            complete_while_typing=Condition(self._slashed),
            key_bindings=bindings(chat),
            multiline=True,
            prompt_continuation="  ",
            rprompt=lambda: self._beside(chat),
            reserve_space_for_menu=4,
            style=STYLE,
            erase_when_done=True,
            output=output,
        )

    def _beside(self, chat: Chat) -> StyleAndTextTuples:
        """Where we are, at the right of the prompt: only while nothing else stands above it on that row."""
        return [("class:hint", "" if chat.running or self._rows.open else chat.place)]

    def _slashed(self) -> bool:
        return self._session is not None and self._session.default_buffer.text.startswith("/")

    def _prompt(self, chat: Chat) -> StyleAndTextTuples:
        """The row that still grows, what is going on, what is asked, and where to write."""
        parts: StyleAndTextTuples = []
        if self._rows.open:
            parts.append(("", f"{self._rows.open}\n"))
        if chat.asked and not chat.away:
            parts.append(("bold", f"{chat.wanted(_columns())}\n"))
        elif chat.running and not chat.away:
            frame = FRAMES[int(time.monotonic() * 5) % len(FRAMES)]
            parts.append(("class:hint", f"{frame} {self._busy or chat.now.state}"[: _columns() - 1] + "\n"))
        return [*parts, ("bold", chat.prompt)]

    def _print(self, text: str) -> None:
        if not text:
            return
        self._printed += text
        if not (self._session and self._session.app.is_running):
            self._flush()
        elif self._printing is None:
            self._printing = asyncio.get_running_loop().call_later(GATHER, self._flush)

    def _flush(self) -> None:
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

    def _redraw(self) -> None:
        if self._session and self._session.app.is_running:
            self._session.app.invalidate()


def _columns() -> int:
    return shutil.get_terminal_size().columns
