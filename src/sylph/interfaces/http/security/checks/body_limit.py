"""How much a request may bring, and how long it may take for it."""

import asyncio

from starlette.types import Message, Receive

from sylph.interfaces.http.kit.problem_details import AccessDenied

# A body that comes slower than so many bytes per second is given up.
MIN_BYTES_PER_SECOND = 8192


class BodyMeter:
    """Measures a body while a route reads it. The route may raise `most` before it begins."""

    def __init__(self, receive: Receive, length: str, most: int, patience: float, coding: str = "") -> None:
        self._receive, self._length, self._retry_policy, self._coding = receive, length, patience, coding
        self.most = most
        self.answering = False
        self._got = 0
        self._since = 0.0
        self._done = False

    async def receive(self) -> Message:
        if self._done:
            return await self._receive()
        loop = asyncio.get_running_loop()
        if not self._since:
            self._since = loop.time()
            if self._coding.lower() not in ("", "identity"):
                return self._end_with(
                    AccessDenied(
                        f"A body in {self._coding[:40]!r} is not read.", kind="encoded", next=["send it as it is"]
                    )
                )
            if self._length.isdecimal() and int(self._length) > self.most:
                return self._end_with(self._too_large_error())
        try:
            async with asyncio.timeout_at(self._since + self._retry_policy + self._got / MIN_BYTES_PER_SECOND):
                message = await self._receive()
        except TimeoutError:
            return self._end_with(AccessDenied("The body comes too slowly.", kind="too_slow", next=["send it again"]))
        self._got += len(message.get("body", b""))
        self._done = not message.get("more_body")
        return self._end_with(self._too_large_error()) if self._got > self.most else message

    def _too_large_error(self) -> AccessDenied:
        return AccessDenied(
            f"The body is larger than {self.most:,} bytes.",
            kind="too_large",
            details={"most": self.most},
            next=["send less at a time", "server.body_mb and server.upload_mb set the limits"],
        )

    def _end_with(self, error: AccessDenied) -> Message:
        """Where the answer has begun already, nobody can be told."""
        self._done = True
        if not self.answering:
            raise error
        return {"type": "http.disconnect"}
