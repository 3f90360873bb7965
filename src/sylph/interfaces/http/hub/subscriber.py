"""One client that is told things as they happen, however slowly it listens."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from sylph.core.signals import SessionPurged
from sylph.engine.log.event_bus import EventReader
from sylph.interfaces.http.hub.frames import StreamEventEncoder, StreamFraming
from sylph.interfaces.http.hub.messages import ConfigChangedMessage, StreamMessage, StreamReset, StreamSessionGone
from sylph.interfaces.http.hub.session_changes import SessionChangeFeed
from sylph.interfaces.http.kit.principal import Principal

# Changes that are told in one go.
CHANGES_PER_WRITE = 100
MAX_QUEUED_MESSAGES = 50
Write = Callable[[bytes], Awaitable[None]]


class StreamSubscriber:
    """What waits is bounded: events by the reader's inbox, changes by the number of sessions, the rest by what the
    client itself asks for. While a write waits for the client, nothing more is made for it.
    """

    def __init__(self, client: str, principal: Principal, reader: EventReader, frames: StreamFraming) -> None:
        self.client, self.principal, self.reader, self.frames = client, principal, reader, frames
        self.noted: dict[str, None] | None = None
        """Sessions whose change is still to be told; None for who does not want to know."""
        self.blocked = 0.0
        """Since when a write waits for the client."""
        self.told = asyncio.get_running_loop().time()
        self.alone = False
        """Whether there is nothing to tell any more once its session is gone."""
        self._configured = False
        """Whether a change of the configuration is still to be told."""
        self._said: deque[StreamMessage] = deque()
        self._waiting: deque[bytes] = deque()
        self._taken = asyncio.Event()

    def queue_first(self, message: StreamMessage) -> None:
        """The first thing it says."""
        self._said.appendleft(message)

    def queue_message(self, message: StreamMessage) -> None:
        self._said.append(message)
        self.reader.wake()

    async def wait_for_room(self) -> None:
        """Returns when the client has taken enough of what was said to it to be said more."""
        while len(self._said) >= MAX_QUEUED_MESSAGES:
            self._taken.clear()
            await self._taken.wait()

    def queue_heartbeat(self) -> None:
        if not self._waiting:
            self._waiting.append(self.frames.frame_heartbeat())
            self.reader.wake()

    def queue_change(self, session: str) -> None:
        if self.noted is not None:
            self.noted[session] = None
            self.reader.wake()

    def queue_config_change(self) -> None:
        """Told once, however often it changed since."""
        if self.noted is not None:
            self._configured = True
            self.reader.wake()

    def follow_session(self, session: str, after: int, head: int) -> None:
        """From the fact behind `after` on; `head` is where the session's log ends."""
        if not head:
            self.report_gone(session)
            return
        if after > head:
            self.queue_message(StreamReset(session=session, after=after, seq=head))
            after = 0
        self.frames.cursor.positions[session] = after
        self.reader.follow(session, after)

    def report_gone(self, session: str) -> None:
        self.unfollow_session(session)
        self.queue_message(StreamSessionGone(session=session))

    def unfollow_session(self, session: str) -> None:
        self.frames.cursor.positions.pop(session, None)
        self.reader.unfollow(session)

    async def run_writer(self, write: Write, press: StreamEventEncoder, board: SessionChangeFeed) -> None:
        """Tells what there is to tell, until there is nothing to wait for or somebody cancels it."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                self._fill_waiting(press, board)
            if self._waiting:
                self.blocked = loop.time()
                await write(self.frames.next_chunk(self._waiting))
                self.told, self.blocked = loop.time(), 0.0
            elif self.alone and not self.reader.after:
                return
            else:
                await self.reader.wait()

    def _fill_waiting(self, press: StreamEventEncoder, board: SessionChangeFeed) -> None:
        frames, waiting = self.frames, self._waiting
        while self._said:
            waiting.append(frames.frame_message(self._said.popleft()))
        self._taken.set()
        for event in self.reader.take():
            waiting.append(frames.frame_event(event, press.encode_event(event)))
            if isinstance(event.body, SessionPurged):
                self.unfollow_session(event.session)
                waiting.append(frames.frame_message(StreamSessionGone(session=event.session)))
        if self._configured:
            self._configured = False
            waiting.append(frames.frame_message(ConfigChangedMessage()))
        for session in list(self.noted or ())[:CHANGES_PER_WRITE]:
            self.noted.pop(session)  # pyright: ignore[reportOptionalMemberAccess] - it has some
            waiting.append(frames.frame_message(board.describe_change(session)))
