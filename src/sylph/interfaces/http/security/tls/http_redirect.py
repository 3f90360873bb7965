"""Who comes to the port of https without TLS is told so, and sent to the right address if they only want to look.

Whether it is TLS is seen by the first byte, which is looked at and left where it is.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Callable
from typing import cast

import msgspec

from sylph.core.errors import ErrorReport
from sylph.interfaces.http.kit.problem_details import PROBLEM_MEDIA_TYPE, make_problem
from sylph.interfaces.http.security.checks.security_headers import DATA_POLICY, NO_STORE, SECURITY_HEADERS

# How a handshake of TLS begins.
TLS_HANDSHAKE = b"\x16"
# What is read of a request in clear text: its head, and no more.
MAX_HEAD_BYTES = 8192
REQUEST_LINE = re.compile(rb"(?:GET|HEAD) (/[!-~]*) HTTP/1\.[01]\r\n")
HOST_HEADER = re.compile(rb"\r\nhost:[ \t]*([A-Za-z0-9.:\[\]-]{1,255})[ \t]*\r\n", re.IGNORECASE)


class HandshakeBuffer(asyncio.Protocol):
    """Holds what comes between the end of a handshake and whoever answers: the two may come in one piece."""

    def __init__(self) -> None:
        self.said = b""
        self.ended = self.gone = False

    def data_received(self, data: bytes) -> None:
        self.said += data

    def eof_received(self) -> bool:
        self.ended = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class says so
        self.gone = True


class TlsDetectProtocol(asyncio.Protocol):
    """One connection, until it is known what it speaks."""

    def __init__(self, make: Callable[[], asyncio.Protocol], context: ssl.SSLContext, patience: float) -> None:
        self._make, self._context, self._retry_policy = make, context, patience
        self._transport: asyncio.Transport | None = None
        self._peek: socket.socket | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._going: asyncio.Task[None] | None = None
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()
        self._clock = loop.call_later(self._retry_policy, self._transport.abort)
        end = cast("socket.socket", transport.get_extra_info("socket"))
        # The loop reads from its own number of this socket; this one only looks.
        self._peek = socket.socket(fileno=os.dup(end.fileno()))
        self._peek.setblocking(False)  # noqa: FBT003 - the socket's own signature
        loop.add_reader(self._peek.fileno(), self._peek_first_byte)

    def data_received(self, data: bytes) -> None:
        """The head of a request in clear text."""
        self._heard += data
        if b"\r\n\r\n" in self._heard or len(self._heard) > MAX_HEAD_BYTES:
            self._redirect_to_https()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base class says so
        self._stop_peeking()
        if self._clock:
            self._clock.cancel()

    def _peek_first_byte(self) -> None:
        assert self._peek
        assert self._transport
        try:
            first = self._peek.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        self._stop_peeking()
        if not first:
            self._transport.abort()
        elif first == TLS_HANDSHAKE:
            self._going = asyncio.create_task(self._start_tls(self._transport))
        else:
            self._transport.resume_reading()

    async def _start_tls(self, transport: asyncio.Transport) -> None:
        """From here on it is a connection like any other."""
        if self._clock:
            self._clock.cancel()
        early = HandshakeBuffer()
        try:
            safe = await asyncio.get_running_loop().start_tls(
                transport, early, self._context, server_side=True, ssl_handshake_timeout=self._retry_policy
            )
        except (OSError, ssl.SSLError):
            # Strangers that do not finish a handshake are nobody's news.
            transport.abort()
            return
        if safe is None or early.gone:
            return
        protocol = self._make()
        protocol.connection_made(safe)
        safe.set_protocol(protocol)
        if early.said:
            protocol.data_received(early.said)
        if early.ended:
            protocol.eof_received()

    def _redirect_to_https(self) -> None:
        assert self._transport
        look, host = REQUEST_LINE.match(self._heard), HOST_HEADER.search(self._heard)
        place = f"https://{host[1].decode()}" if host else ""
        told = ErrorReport("tls_only", "This port speaks https.", {}, (f"use {place}" if place else "use https://…",))
        sent = bool(look and place)
        body = msgspec.json.encode(make_problem(told, 308 if sent else 400))
        lines = [
            *SECURITY_HEADERS,
            DATA_POLICY,
            NO_STORE,
            (b"content-type", PROBLEM_MEDIA_TYPE.encode()),
            (b"content-length", b"%d" % len(body)),
        ]
        if sent and look:
            lines.append((b"location", place.encode() + look[1]))
        status = b"308 Permanent Redirect" if sent else b"400 Bad Request"
        head = b"".join(b"%s: %s\r\n" % line for line in lines)
        self._transport.write(b"HTTP/1.1 %s\r\n%sconnection: close\r\n\r\n%s" % (status, head, body))
        self._transport.close()

    def _stop_peeking(self) -> None:
        if self._peek:
            asyncio.get_running_loop().remove_reader(self._peek.fileno())
            self._peek.close()
            self._peek = None
