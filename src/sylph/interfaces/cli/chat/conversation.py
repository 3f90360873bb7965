"""One conversation: what is said becomes commands, what happens is shown, and it knows where it stands."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from typing import Any, Protocol

from msgspec.structs import replace

from sylph.app import App
from sylph.core.commands import Answer, Command, Continue, Interrupt, Send
from sylph.core.errors import ServerGone, UserError
from sylph.core.events import Event
from sylph.core.facts.tool_call import Answered, Asked
from sylph.core.facts.turn import InputCancelled, InputReceived, StateChanged, TurnEnded
from sylph.core.signals import SessionFailed
from sylph.core.text import window_usage
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.interfaces.cli.chat.answer_input import AnswerInput
from sylph.interfaces.cli.chat.message_echo import MessageEcho
from sylph.interfaces.cli.kit.options import TaskOptions
from sylph.interfaces.cli.turn import question_prompt
from sylph.interfaces.cli.turn.follower import run_in_background
from sylph.interfaces.cli.turn.open_session import open_session
from sylph.interfaces.text.budget_text import session_spending
from sylph.interfaces.text.render import (
    StyledLine,
    answered_line,
    error_lines,
    full_argument_lines,
    one_line,
    question_lines,
    styled_line,
)
from sylph.interfaces.text.sandbox_notice import SANDBOX_OFF, sandbox_off_notice
from sylph.interfaces.text.turn_presenter import CHAT_HINTS, DisplayEvent, TurnPresenter

# Two Ctrl-C (or Ctrl-D) within this many seconds leave.
REPEAT_SECONDS = 2.0


class ChatFrontend(Protocol):
    """The person's side of a chat: something that shows, and something that is typed into."""

    @property
    def person(self) -> bool:
        """Whether somebody is there to answer a question."""
        ...

    def display(self, act: DisplayEvent) -> None: ...
    def print_lines(self, lines: list[StyledLine]) -> None: ...
    def show_question(self, prompt: str, lines: list[StyledLine]) -> None: ...
    def close(self) -> None: ...
    def read_lines(self, chat: "TerminalChat") -> AsyncGenerator[str, None]:
        """What the person says, until they leave."""
        ...


class TerminalChat:
    """One conversation at a time. What it knows of it (`now`) is a fold of the events it was shown."""

    def __init__(self, app: App, front: ChatFrontend, options: TaskOptions) -> None:
        self.app, self.front, self.options = app, front, options
        self.now = SessionState()
        self.terminated = False
        self._narrator = TurnPresenter(CHAT_HINTS, app.runtime.redactor)
        self._watching = AsyncExitStack()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._warned = 0.0
        self._coming, self._came = set[str](), set[str]()
        self.lost = self.away = False
        self._answered = set[str]()
        self._messages = MessageEcho()
        self.replies = AnswerInput()
        self._whole: tuple[str, list[StyledLine]] = ("", [])

    async def __aenter__(self) -> "TerminalChat":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._watching.aclose()

    @property
    def is_running(self) -> bool:
        return bool(self.now.open_turn or self.now.queue) or self.now.state == "compacting"

    @property
    def open_question(self) -> Asked | None:
        """The question that waits for an answer."""
        return next(iter(self.now.asked.values()), None)

    async def send_message(self, text: str, **how: Any) -> None:
        if not self.now.id:
            await self.enter_session(await open_session(self.app, self.options))
        self._quiet.clear()
        with self._messages.expect_message(self.app.runtime.redactor.redact_text(text)):
            await self.send_command(Send(text=text, dry_run=self.options.dry_run, **how))

    async def send_command(self, command: Command) -> None:
        if not self.now.id:
            raise UserError("Nothing has been said yet.", next=["type what is to be done"])
        if isinstance(command, Answer):
            self._answered.add(command.id)
        id = await self.app.runtime.send(self.now.id, command)
        if id and id not in self._came:
            # It will be seen: until then the session is not at rest, whatever is seen before.
            self._quiet.clear()
            self._coming.add(id)

    async def stop_turn(self) -> None:
        """Ends the running turn, if there still is one."""
        with suppress(UserError):
            await self.send_command(Interrupt(reason="stopped in the chat"))

    async def wait_idle(self) -> None:
        """Waits until nothing runs any more and all of it was shown."""
        if self.is_running or self._coming or not self._quiet.is_set():
            await self._quiet.wait()

    async def enter_session(self, summary: SessionState) -> None:
        """Leaves the session of before for this one; a turn that was interrupted in it goes on."""
        await self._watching.aclose()
        self.now, self._narrator = summary, TurnPresenter(CHAT_HINTS, self.app.runtime.redactor)
        self._narrator.start_from(summary)
        self._coming, self._came = set[str](), set[str]()
        self._quiet.set()
        await self._watching.enter_async_context(run_in_background(self._watch_session(summary.id, summary.seq)))
        if summary.open_turn or summary.queue:
            self._quiet.clear()
            await self._continue_turn(summary)

    async def _continue_turn(self, summary: SessionState) -> None:
        if summary.pid != self.app.runtime.pid:
            await self.send_command(Continue())
        elif self.front.person and (asked := self.open_question):
            # It runs already, by another door's wish; whoever answers first has answered.
            self.front.show_question(self.prompt_text(), question_lines(asked, self._narrator.calls.get(asked.call)))

    async def leave_session(self) -> None:
        """Goes back to having said nothing."""
        await self._watching.aclose()
        self.now = SessionState()

    def change_options(self, **changed: Any) -> None:
        """What a session that is not begun yet will be like."""
        self.options = replace(self.options, **changed)

    def may_leave(self) -> bool:
        """Whether the person meant to leave: at once when nothing runs, else only when they insist."""
        if not self.is_running or self._is_repeated():
            return True
        self.front.print_lines(
            [styled_line("A turn is running: Ctrl-C stops it. Once more leaves it open for `sylph resume`.", "warn")]
        )
        return False

    async def handle_interrupt(self) -> None:
        """Ctrl-C: ends the turn, not the program; with nothing to end, twice leaves."""
        if self.is_running:
            await self.stop_turn()
        elif self._is_repeated():
            self.front.close()
        else:
            self.front.print_lines([styled_line("Ctrl-C once more leaves; so does Ctrl-D.", "dim")])

    async def handle_signals(self, caught: "asyncio.Queue[int]") -> None:
        """Ctrl-C where no editor takes the key, and SIGTERM."""
        while True:
            if await caught.get() == signal.SIGINT:
                await self.handle_interrupt()
            else:
                self.terminated = True
                self.front.close()

    def _is_repeated(self) -> bool:
        before, self._warned = self._warned, time.monotonic()
        return self._warned - before < REPEAT_SECONDS

    async def answer_question(self, asked: Asked, text: str) -> None:
        whole = [] if self.replies.is_editing(asked) else self._full_arguments(asked)
        if whole and text.strip().lower() == question_prompt.VIEW_KEY:
            self.front.show_question(self.prompt_text(), whole)
        elif answer := self.replies.take_answer(asked, text, self._call_arguments(asked)):
            await self.send_command(answer)
        else:
            self.front.show_question(self.prompt_text(), [])

    def prompt_text(self, columns: int = 80) -> str:
        """What the open question waits for; nothing where none is open."""
        if self.open_question is None:
            return ""
        cut = bool(self._full_arguments(self.open_question))
        return self.replies.prompt_text(self.open_question, self._call_arguments(self.open_question), columns, cut=cut)

    def _full_arguments(self, asked: Asked) -> list[StyledLine]:
        # The prompt is drawn at every key; what is long is not looked through each time.
        if self._whole[0] != asked.id:
            self._whole = (asked.id, full_argument_lines(asked, self._narrator.calls.get(asked.call)))
        return self._whole[1]

    def _call_arguments(self, asked: Asked) -> str:
        called = self._narrator.calls.get(asked.call)
        return called.arguments if called else ""

    async def _watch_session(self, session: str, after: int) -> None:
        while True:
            try:
                async for event in self.app.runtime.watch(session, after=after):
                    after = event.seq or after
                    await self._handle_event(event)
            except ServerGone as error:
                self.away = True
                self.front.display(self._narrator.break_stream())
                self.front.print_lines(list(error_lines(error.trouble)))
                self._coming.clear()
                self._quiet.set()
                if not self.front.person:
                    self.lost = True
                    self.front.close()
                    return
            await self.app.runtime.wait_for_server()
            self.away = False
            self.front.print_lines([styled_line("The server is back.", "dim")])

    async def _handle_event(self, event: Event) -> None:
        if event.seq:
            SESSION_FOLD.step(self.now, event)
        if isinstance(event.body, InputReceived):
            self._came.add(event.body.id)
            self._coming.discard(event.body.id)
        for act in self._narrator.present_event(event):
            self.front.display(act)
        self.front.print_lines(self._messages.event_lines(event))
        if isinstance(event.body, Answered) and event.body.id not in self._answered and self.front.person:
            self.front.print_lines([answered_line(event.body)])
        await self._react_to_event(event)

    async def _react_to_event(self, event: Event) -> None:
        match event.body:
            case Asked() as asked if not self.front.person:
                await self.send_command(question_prompt.unattended_answer(asked))
            case Asked() as asked if asked is not self.open_question:
                # One after the other: it is shown when those before it have their answer.
                pass
            case Asked() | Answered() if asked := self.open_question:
                self.front.show_question(
                    self.prompt_text(), question_lines(asked, self._narrator.calls.get(asked.call))
                )
            case SessionFailed(trouble=trouble):
                self.front.print_lines(list(error_lines(trouble)))
                self._quiet.set()
            case TurnEnded() | StateChanged() | InputCancelled() if not self.is_running and not self._coming:
                self._quiet.set()
            case _:
                pass

    @property
    def model(self) -> str:
        return self.now.model or self.options.model

    @property
    def mode(self) -> str:
        return self.now.mode if self.now.id else self.options.mode or self.app.config.settings.mode

    @property
    def sandbox_notice(self) -> str:
        """That the sandbox is off, if it is."""
        if self.now.id:
            return sandbox_off_notice(self.now)
        return "" if self.app.sandbox_enabled(wanted=self.options.sandboxed) or self.mode == "sandbox" else SANDBOX_OFF

    @property
    def prompt(self) -> str:
        """What stands before the line to write on. Nobody should forget a dry run, nor that the sandbox is off."""
        return " · ".join(filter(None, [self.sandbox_notice, "dry run" if self.options.dry_run else ""])) + "> "

    @property
    def status_line(self) -> str:
        """Where we are, in a few words."""
        now = self.now
        share = (
            f"{window_usage.window_percent(now.context_tokens, now.window)} %"
            if now.window and now.context_tokens
            else ""
        )
        share = " ".join(filter(None, [share, window_usage.window_level(now.context_tokens, now.window)]))
        model = one_line(self.model, 40) + (" (chat only)" if self.app.is_chat_only(self.model) else "")
        told = [model, self.mode, self.sandbox_notice, share, session_spending(now, self.app.budget_ledger.budget)]
        return " · ".join(filter(None, told))
