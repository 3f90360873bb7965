"""The server's side of a WebSocket, as far as the Responses dialect needs it."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

from tests.model_server.responses import ResponsesDialect
from tests.model_server.script import Asked, Step, silence

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def wants(asked: Asked) -> bool:
    return asked.headers.get("upgrade", "").lower() == "websocket"


def welcome(asked: Asked) -> bytes:
    key = asked.headers["sec-websocket-key"].encode()
    accept = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest())
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    return head + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"


def frame(kind: int, data: bytes, *, last: bool = True) -> bytes:
    size = len(data)
    if size < 126:
        length = bytes((size,))
    elif size < 1 << 16:
        length = bytes((126,)) + size.to_bytes(2, "big")
    else:
        length = bytes((127,)) + size.to_bytes(8, "big")
    return bytes((0x80 * last | kind,)) + length + data


class Conversation:
    """What goes on over one WebSocket: requests, their answers, and which answer can be gone on from."""

    def __init__(self, asked: Asked, write: Callable[[bytes], None], heard: Callable[[Asked], Step]) -> None:
        self._asked, self._write, self._heard = asked, write, heard
        self._bytes = bytearray()
        self._dialect = ResponsesDialect()
        self._count = 0
        self._last = ""

    def feed(self, data: bytes) -> list[tuple[Step, str]]:
        """The steps that are to be played for what came."""
        self._bytes += data
        steps: list[tuple[Step, str]] = []
        while (message := self._message()) is not None:
            kind, said = message
            if kind == 8:
                self._write(frame(8, said[:2]))
            elif kind == 9:
                self._write(frame(10, said))
            elif kind == 1:
                steps.append(self._request(said))
        return steps

    async def play(self, step: Step, id: str) -> bool:
        """Says a step; True if the connection is to be closed then."""
        if step.status != 200:
            self._say({"type": "error", "status": step.status, **json.loads(step.body or "{}")})
            return step.hang_up
        events, middle = self._dialect.events(step, id)
        if step.at == "head":
            await silence(step)
            if step.drop:
                return True
        for at, event in enumerate(events):
            if at == middle and step.at == "stream":
                await silence(step)
                if step.drop:
                    return True
            await asyncio.sleep(step.delay)
            self._say(event, parts=bool(step.split))
        self._last = "" if step.error else id
        return step.hang_up

    def _request(self, said: bytes) -> tuple[Step, str]:
        body: dict[str, Any] = json.loads(said)
        asked = Asked("WEBSOCKET", self._asked.path, self._asked.headers, said)
        step = self._heard(asked)
        self._count += 1
        previous = body.get("previous_response_id")
        if previous and (step.forget or previous != self._last):
            error = {"code": "previous_response_not_found", "message": f"Previous response {previous!r} not found."}
            return Step(status=400, body=json.dumps({"error": error})), ""
        return step, f"resp_{self._count}"

    def _say(self, event: dict[str, Any], *, parts: bool = False) -> None:
        data = json.dumps(event, ensure_ascii=False).encode()
        if not parts:
            self._write(frame(1, data))
            return
        middle = len(data) // 2
        # In two fragments, with a ping between.
        self._write(frame(1, data[:middle], last=False) + frame(9, b"alive?") + frame(0, data[middle:]))

    def _message(self) -> tuple[int, bytes] | None:
        held = self._bytes
        if len(held) < 2:
            return None
        size, at = held[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(held) < 2 + width:
                return None
            size, at = int.from_bytes(held[2 : 2 + width], "big"), 2 + width
        assert held[1] & 0x80, "A client masks what it sends."
        if len(held) < at + 4 + size:
            return None
        mask, data = held[at : at + 4], held[at + 4 : at + 4 + size]
        said = bytes(byte ^ mask[number % 4] for number, byte in enumerate(data))
        kind = held[0] & 0x0F
        del held[: at + 4 + size]
        return kind, said
