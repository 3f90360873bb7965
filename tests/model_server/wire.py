"""An answer as bytes, and when they go out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.model_server.script import Asked, Step


class Dialect(Protocol):
    """One way to say a step. `media` is the type of its stream, `keepalive` what it sends to say nothing."""

    media: str
    keepalive: bytes

    def takes(self, path: str) -> bool:
        """Whether a request to this path is one for an answer."""
        ...

    def streams(self, asked: Asked) -> bool: ...

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        """The pieces of a stream, and how many of them come before its trouble: half of what it says."""
        ...

    def document(self, step: Step) -> bytes: ...

    def pages(self, models: Sequence[str | Mapping[str, Any]]) -> Mapping[str, str]:
        """Documents that can be got, or asked for, beside answers."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A step ready to be written: what goes out, and after how many frames trouble comes."""

    step: Step
    head: bytes
    frames: tuple[bytes, ...]
    middle: int

    @property
    def calm(self) -> bool:
        """Whether all of it can be written at once."""
        step = self.step
        return not (step.delay or step.split or step.stall or step.hold or step.held or step.drop)


def answer(step: Step, dialect: Dialect, *, stream: bool) -> Answer:
    if step.body is not None or step.whole or not stream:
        body = step.body.encode() if step.body is not None else dialect.document(step)
        headers = {"content-type": "application/json", **step.headers, "content-length": str(len(body))}
        size = step.split or len(body) // 2 + 1
        return Answer(
            step, head(step.status, headers), tuple(body[at : at + size] for at in range(0, len(body), size)), 1
        )
    headers = {"content-type": dialect.media, **step.headers, "transfer-encoding": "chunked"}
    frames, middle = dialect.frames(step)
    frames = [dialect.keepalive] * step.keepalives + frames
    if step.split:
        joined = b"".join(frames)
        frames = [joined[at : at + step.split] for at in range(0, len(joined), step.split)]
    chunked = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames]
    return Answer(step, head(step.status, headers), (*chunked, b"0\r\n\r\n"), step.keepalives + middle)


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def event(packet: Mapping[str, Any], name: str = "") -> bytes:
    named = f"event: {name}\n".encode() if name else b""
    return named + b"data: " + json.dumps(packet, ensure_ascii=False).encode() + b"\n\n"


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode()
