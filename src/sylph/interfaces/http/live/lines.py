"""One client that is told things as they happen, however slowly it listens."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from sylph.core.signals import SessionPurged
from sylph.engine.bus import Reader
from sylph.interfaces.http.live.board import Board
from sylph.interfaces.http.live.frames import Frames, Press
from sylph.interfaces.http.live.messages import Configured, Gone, Message, Reset
from sylph.interfaces.http.who import Who

# Changes that are told in one go.
NOTES = 100
SAID = 50
Write = Callable[[bytes], Awaitable[None]]


class Line:
    """What waits is bounded: events by the reader's inbox, changes by the number of sessions, the rest by what the
    client itself asks for. While a write waits for the client, nothing more is made for it.
    """

    def __init__(self, client: str, who: Who, reader: Reader, frames: Frames) -> None:
        self.client, self.who, self.reader, self.frames = client, who, reader, frames
        self.noted: dict[str, None] | None = None
        """Sessions whose change is still to be told; None for who does not want to know."""
        self.blocked = 0.0
        """Since when a write waits for the client."""
        self.told = asyncio.get_running_loop().time()
        self.alone = False
        """Whether there is nothing to tell any more once its session is gone."""
        self._configured = False
        """Whether a change of the configuration is still to be told."""
        self._said: deque[Message] = deque()
        self._waiting: deque[bytes] = deque()
        self._taken = asyncio.Event()

    def open(self, message: Message) -> None:
        """The first thing it says."""
        self._said.appendleft(message)

    def say(self, message: Message) -> None:
        self._said.append(message)
        self.reader.wake()

    async def room(self) -> None:
        """Returns when the client has taken enough of what was said to it to be said more."""
        while len(self._said) >= SAID:
            self._taken.clear()
            await self._taken.wait()

    def beat(self) -> None:
        if not self._waiting:
            self._waiting.append(self.frames.beat())
            self.reader.wake()

    def note(self, session: str) -> None:
        if self.noted is not None:
            self.noted[session] = None
            self.reader.wake()

    def configured(self) -> None:
        """Told once, however often it changed since."""
        if self.noted is not None:
            self._configured = True
            self.reader.wake()

    def follow(self, session: str, after: int, head: int) -> None:
        """From the fact behind `after` on; `head` is where the session's log ends."""
        if not head:
            self.gone(session)
            return
        if after > head:
            self.say(Reset(session=session, after=after, seq=head))
            after = 0
        self.frames.cursor.places[session] = after
        self.reader.follow(session, after)

    def gone(self, session: str) -> None:
        self.leave(session)
        self.say(Gone(session=session))

    def leave(self, session: str) -> None:
        self.frames.cursor.places.pop(session, None)
        self.reader.leave(session)

    async def pump(self, write: Write, press: Press, board: Board) -> None:
        """Tells what there is to tell, until there is nothing to wait for or somebody cancels it."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                self._fill(press, board)
            if self._waiting:
                self.blocked = loop.time()
                await write(self.frames.gulp(self._waiting))
                self.told, self.blocked = loop.time(), 0.0
            elif self.alone and not self.reader.after:
                return
            else:
                await self.reader.wait()

    def _fill(self, press: Press, board: Board) -> None:
        frames, waiting = self.frames, self._waiting
        while self._said:
            waiting.append(frames.message(self._said.popleft()))
        self._taken.set()
        for event in self.reader.take():
            waiting.append(frames.event(event, press.line(event)))
            if isinstance(event.body, SessionPurged):
                self.leave(event.session)
                waiting.append(frames.message(Gone(session=event.session)))
        if self._configured:
            self._configured = False
            waiting.append(frames.message(Configured()))
        for session in list(self.noted or ())[:NOTES]:
            self.noted.pop(session)  # pyright: ignore[reportOptionalMemberAccess] - it has some
            waiting.append(frames.message(board.note(session)))
