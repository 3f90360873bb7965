"""HTTP on the wire: how many connections, how large and how slow a head may be, before there is a request at all."""

import logging
import os
import socket
import struct
from asyncio import TimerHandle, Transport
from typing import Any, ClassVar, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sylph.core.errors import ErrorReport
from sylph.interfaces.http.kit.problem_details import PROBLEM_MEDIA_TYPE, make_problem
from sylph.interfaces.http.security.checks.security_headers import DATA_POLICY, NO_STORE, SECURITY_HEADERS

# The head of a request, all of its lines.
MAX_HEAD_BYTES = 65_536
# So long the rest of a body is let come after it was answered: who is cut while sending does not see the answer.
LINGER_SECONDS = 2.0
# Who takes nothing of an answer for so long gets no more of it.
STALL_TIMEOUT = 60.0
# What strangers send that is no HTTP is their mistake: nobody here needs to read of it.
logger = logging.getLogger("sylph.http.wire")
logger.setLevel(logging.ERROR)


class LimitedHttpProtocol(HttpToolsProtocol):
    """A connection. It begins with waiting for a head, and waits again after each answer."""

    most: ClassVar[int] = 1000
    patience: ClassVar[float] = 10.0
    own: ClassVar[bool] = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.logger = logger
        self._heading = True
        self._size = self._head = 0
        self._clock: TimerHandle | None = None
        self._stalled: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse_request(503, "busy", "There are too many connections.", "try again later")
        elif self.own and not _is_own_user(transport):
            transport.abort()
        else:
            self._start_timer(self.patience, self._on_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        if self._stalled:
            self._stalled.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._heading:
            self._size += len(data)
            if self._clock is None:
                self._start_timer(self.patience, self._on_timeout)
        super().data_received(data)
        if self._heading and self._size > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _count_head(self, size: int) -> None:
        """Also where the head comes whole at once. The parser gives up, and the answer says why."""
        self._head += size
        if self._head > MAX_HEAD_BYTES:
            raise ValueError("too large")

    def on_headers_complete(self) -> None:
        self._heading, self._size = False, 0
        self._cancel_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._cancel_timer()
        self._heading = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body and not self.transport.is_closing():
            self._start_timer(LINGER_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALL_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        if self._head > MAX_HEAD_BYTES:
            self._refuse_head()
        else:
            self._refuse_request(400, "bad_request", msg, "send HTTP/1.1")

    def _refuse_head(self) -> None:
        self._refuse_request(
            431, "too_large", f"The head is larger than {MAX_HEAD_BYTES:,} bytes.", "send fewer or shorter headers"
        )

    def _on_timeout(self) -> None:
        self._clock = None
        if not self.transport.is_closing():
            self._refuse_request(408, "too_slow", "The request comes too slowly.", "send it again")

    def _start_timer(self, seconds: float, then: Any) -> None:
        self._cancel_timer()
        self._clock = self.loop.call_later(seconds, then)

    def _cancel_timer(self) -> None:
        if self._clock:
            self._clock.cancel()
            self._clock = None

    def _refuse_request(self, status: int, kind: str, said: str, hint: str) -> None:
        """An answer without a request, and the end of the connection."""
        self._cancel_timer()
        running = self.cycle and not self.cycle.response_complete
        if running and self.cycle.response_started:
            # Words in the midst of another answer would be taken for a part of it.
            self.transport.close()
            return
        if running:
            self.cycle.disconnected = True
        body = msgspec.json.encode(make_problem(ErrorReport(kind, said, {}, (hint,)), status))
        told = [
            *SECURITY_HEADERS,
            DATA_POLICY,
            NO_STORE,
            (b"content-type", PROBLEM_MEDIA_TYPE.encode()),
            (b"content-length", b"%d" % len(body)),
        ]
        lines = b"".join(b"%s: %s\r\n" % each for each in told)
        self.transport.write(STATUS_LINE[status] + lines + b"connection: close\r\n\r\n" + body)
        self.transport.close()


def make_protocol(most: int, patience: float, *, own: bool = False) -> type[LimitedHttpProtocol]:
    """The protocol with these limits; uvicorn makes one of it for each connection."""
    return type("LimitedHttpProtocol", (LimitedHttpProtocol,), {"most": most, "patience": patience, "own": own})


def _is_own_user(transport: Transport) -> bool:
    """Whether the other end of a unix socket is this user's, where the system tells."""
    end = cast("socket.socket", transport.get_extra_info("socket"))
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return user in (0, os.getuid())
