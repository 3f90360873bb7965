"""One conversation: what is said becomes commands, what happens is shown, and it knows where it stands."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from typing import Any, Protocol

from msgspec.structs import replace

from sylph.app import App
from sylph.core import gauge
from sylph.core.commands import Answer, Command, Continue, Interrupt, Send
from sylph.core.errors import ServerGone, UserError
from sylph.core.events import Event
from sylph.core.facts import Answered, Asked, InputCancelled, InputReceived, StateChanged, TurnEnded
from sylph.core.signals import SessionFailed
from sylph.engine.summary import SUMMARY, Summary
from sylph.interfaces.allowance import used_up
from sylph.interfaces.cli import asking
from sylph.interfaces.cli.follow import beside
from sylph.interfaces.cli.messages import Messages
from sylph.interfaces.cli.options import Options
from sylph.interfaces.cli.replies import Replies
from sylph.interfaces.cli.run import session_for
from sylph.interfaces.confinement import OFF, switched_off
from sylph.interfaces.narrate import CHAT, Act, Narrator
from sylph.interfaces.render import Line, answered_line, flat, line, question_lines, trouble_lines, unseen

# Two Ctrl-C (or Ctrl-D) within this many seconds leave.
TWICE = 2.0


class Front(Protocol):
    """The person's side of a chat: something that shows, and something that is typed into."""

    @property
    def person(self) -> bool:
        """Whether somebody is there to answer a question."""
        ...

    def perform(self, act: Act) -> None: ...
    def note(self, lines: list[Line]) -> None: ...
    def ask(self, prompt: str, lines: list[Line]) -> None: ...
    def leave(self) -> None: ...
    def lines(self, chat: "Chat") -> AsyncGenerator[str, None]:
        """What the person says, until they leave."""
        ...


class Chat:
    """One conversation at a time. What it knows of it (`now`) is a fold of the events it was shown."""

    def __init__(self, app: App, front: Front, options: Options) -> None:
        self.app, self.front, self.options = app, front, options
        self.now = Summary()
        self.terminated = False
        self._narrator = Narrator(CHAT, app.runtime.veil)
        self._watching = AsyncExitStack()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._warned = 0.0
        self._coming, self._came = set[str](), set[str]()
        self.lost = self.away = False
        self._answered = set[str]()
        self._messages = Messages()
        self.replies = Replies()
        self._whole: tuple[str, list[Line]] = ("", [])

    async def __aenter__(self) -> "Chat":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._watching.aclose()

    @property
    def running(self) -> bool:
        return bool(self.now.open_turn or self.now.queue) or self.now.state == "compacting"

    @property
    def asked(self) -> Asked | None:
        """The question that waits for an answer."""
        return next(iter(self.now.asked.values()), None)

    async def say(self, text: str, **how: Any) -> None:
        if not self.now.id:
            await self.enter(await session_for(self.app, self.options))
        self._quiet.clear()
        with self._messages.own(self.app.runtime.veil.text(text)):
            await self.send(Send(text=text, dry_run=self.options.dry_run, **how))

    async def send(self, command: Command) -> None:
        if not self.now.id:
            raise UserError("Nothing has been said yet.", next=["type what is to be done"])
        if isinstance(command, Answer):
            self._answered.add(command.id)
        id = await self.app.runtime.send(self.now.id, command)
        if id and id not in self._came:
            # It will be seen: until then the session is not at rest, whatever is seen before.
            self._quiet.clear()
            self._coming.add(id)

    async def stop(self) -> None:
        """Ends the running turn, if there still is one."""
        with suppress(UserError):
            await self.send(Interrupt(reason="stopped in the chat"))

    async def rest(self) -> None:
        """Waits until nothing runs any more and all of it was shown."""
        if self.running or self._coming or not self._quiet.is_set():
            await self._quiet.wait()

    async def enter(self, summary: Summary) -> None:
        """Leaves the session of before for this one; a turn that was interrupted in it goes on."""
        await self._watching.aclose()
        self.now, self._narrator = summary, Narrator(CHAT, self.app.runtime.veil)
        self._narrator.begin(summary)
        self._coming, self._came = set[str](), set[str]()
        self._quiet.set()
        await self._watching.enter_async_context(beside(self._watch(summary.id, summary.seq)))
        if summary.open_turn or summary.queue:
            self._quiet.clear()
            await self._go_on(summary)

    async def _go_on(self, summary: Summary) -> None:
        if summary.pid != self.app.runtime.pid:
            await self.send(Continue())
        elif self.front.person and (asked := self.asked):
            # It runs already, by another door's wish; whoever answers first has answered.
            self.front.ask(self.wanted(), question_lines(asked, self._narrator.calls.get(asked.call)))

    async def leave(self) -> None:
        """Goes back to having said nothing."""
        await self._watching.aclose()
        self.now = Summary()

    def prefer(self, **changed: Any) -> None:
        """What a session that is not begun yet will be like."""
        self.options = replace(self.options, **changed)

    def may_leave(self) -> bool:
        """Whether the person meant to leave: at once when nothing runs, else only when they insist."""
        if not self.running or self._insists():
            return True
        self.front.note(
            [line("A turn is running: Ctrl-C stops it. Once more leaves it open for `sylph resume`.", "warn")]
        )
        return False

    async def interrupt(self) -> None:
        """Ctrl-C: ends the turn, not the program; with nothing to end, twice leaves."""
        if self.running:
            await self.stop()
        elif self._insists():
            self.front.leave()
        else:
            self.front.note([line("Ctrl-C once more leaves; so does Ctrl-D.", "dim")])

    async def signals(self, caught: "asyncio.Queue[int]") -> None:
        """Ctrl-C where no editor takes the key, and SIGTERM."""
        while True:
            if await caught.get() == signal.SIGINT:
                await self.interrupt()
            else:
                self.terminated = True
                self.front.leave()

    def _insists(self) -> bool:
        before, self._warned = self._warned, time.monotonic()
        return self._warned - before < TWICE

    async def answer(self, asked: Asked, text: str) -> None:
        whole = [] if self.replies.editing(asked) else self._unseen(asked)
        if whole and text.strip().lower() == asking.VIEW:
            self.front.ask(self.wanted(), whole)
        elif answer := self.replies.answer(asked, text, self._arguments(asked)):
            await self.send(answer)
        else:
            self.front.ask(self.wanted(), [])

    def wanted(self, columns: int = 80) -> str:
        """What the open question waits for; nothing where none is open."""
        if self.asked is None:
            return ""
        cut = bool(self._unseen(self.asked))
        return self.replies.prompt(self.asked, self._arguments(self.asked), columns, cut=cut)

    def _unseen(self, asked: Asked) -> list[Line]:
        # The prompt is drawn at every key; what is long is not looked through each time.
        if self._whole[0] != asked.id:
            self._whole = (asked.id, unseen(asked, self._narrator.calls.get(asked.call)))
        return self._whole[1]

    def _arguments(self, asked: Asked) -> str:
        called = self._narrator.calls.get(asked.call)
        return called.arguments if called else ""

    async def _watch(self, session: str, after: int) -> None:
        while True:
            try:
                async for event in self.app.runtime.watch(session, after=after):
                    after = event.seq or after
                    await self._see(event)
            except ServerGone as error:
                self.away = True
                self.front.perform(self._narrator.broke())
                self.front.note(list(trouble_lines(error.trouble)))
                self._coming.clear()
                self._quiet.set()
                if not self.front.person:
                    self.lost = True
                    self.front.leave()
                    return
            await self.app.runtime.back()
            self.away = False
            self.front.note([line("The server is back.", "dim")])

    async def _see(self, event: Event) -> None:
        if event.seq:
            SUMMARY.step(self.now, event)
        if isinstance(event.body, InputReceived):
            self._came.add(event.body.id)
            self._coming.discard(event.body.id)
        for act in self._narrator.see(event):
            self.front.perform(act)
        self.front.note(self._messages.see(event))
        if isinstance(event.body, Answered) and event.body.id not in self._answered and self.front.person:
            self.front.note([answered_line(event.body)])
        await self._react(event)

    async def _react(self, event: Event) -> None:
        match event.body:
            case Asked() as asked if not self.front.person:
                await self.send(asking.refusal(asked))
            case Asked() as asked if asked is not self.asked:
                # One after the other: it is shown when those before it have their answer.
                pass
            case Asked() | Answered() if asked := self.asked:
                self.front.ask(self.wanted(), question_lines(asked, self._narrator.calls.get(asked.call)))
            case SessionFailed(trouble=trouble):
                self.front.note(list(trouble_lines(trouble)))
                self._quiet.set()
            case TurnEnded() | StateChanged() | InputCancelled() if not self.running and not self._coming:
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
    def unconfined(self) -> str:
        """That the sandbox is off, if it is."""
        if self.now.id:
            return switched_off(self.now)
        return "" if self.app.sandboxed(wanted=self.options.sandboxed) or self.mode == "sandbox" else OFF

    @property
    def prompt(self) -> str:
        """What stands before the line to write on. Nobody should forget a dry run, nor that the sandbox is off."""
        return " · ".join(filter(None, [self.unconfined, "dry run" if self.options.dry_run else ""])) + "> "

    @property
    def place(self) -> str:
        """Where we are, in a few words."""
        now = self.now
        share = f"{gauge.percent(now.context_tokens, now.window)} %" if now.window and now.context_tokens else ""
        share = " ".join(filter(None, [share, gauge.level(now.context_tokens, now.window)]))
        model = flat(self.model, 40) + (" (chat only)" if self.app.chats(self.model) else "")
        told = [model, self.mode, self.unconfined, share, used_up(now, self.app.purse.budget)]
        return " · ".join(filter(None, told))
