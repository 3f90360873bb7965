"""What a scripted model says: steps, and how the step for a request is found."""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, cast

Place = Literal["", "head", "stream"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One answer. Trouble comes before the head, or in the stream after half of what it says."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    usage: Mapping[str, Any] | None = None
    finish: str | None = None  # instead of the fitting one; "" for none at all

    chunk: int = 8  # characters in one delta
    delay: float = 0.0  # seconds before each frame
    split: int = 0  # bytes in one write, whatever they cut in two
    keepalives: int = 0  # comments before the first frame

    stall: float = 0.0  # seconds of silence at `at`
    hold: asyncio.Event | None = None  # silence at `at` until it is set
    held: bool = False  # silence before it, and again after half of it, until the server is told to `release` it
    drop: bool = False  # the connection breaks at `at`
    at: Place = "head"

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str | None = None  # instead of all that; sent as it is
    error: Mapping[str, Any] | None = None  # an error object in the stream, after half of the text

    whole: bool = False  # one JSON document although a stream was asked for
    done: bool = True  # [DONE] at the end
    ids: bool = True  # calls have ids
    indexes: bool = True  # calls have indexes
    objects: bool = False  # arguments come as an object
    pieces: bool = True  # arguments come in pieces
    legacy: bool = False  # `function_call` instead of `tool_calls`

    empties: int = 0  # deltas that say nothing, before each that says something
    encrypted: str = ""  # what a reasoning item carries that only its service can read
    refusal: str = ""  # a refusal in words instead of text
    searched: bool = False  # the service searched the web by itself before it answered
    loading: bool = False  # Ollama: the model is being loaded, and that was all
    hang_up: bool = False  # WebSocket: the server closes the connection after this answer
    forget: bool = False  # WebSocket: it does not know the response to go on from, if one is named


def say(text: str, **how: Any) -> Step:
    return Step(text=text, **how)


def begin(text: str, **how: Any) -> Step:
    """Half of it is said; the rest never comes."""
    return Step(text=text, stall=math.inf, at="stream", **how)


def call(name: str, /, *, how: Mapping[str, Any] | None = None, **arguments: Any) -> Step:
    return Step(calls=((name, arguments),), **(how or {}))


def calls(*wanted: tuple[str, Mapping[str, Any]], **how: Any) -> Step:
    """Several calls in one answer."""
    return Step(calls=wanted, **how)


def fail(status: int, message: str = "", *, headers: Mapping[str, str] | None = None, **error: Any) -> Step:
    """An HTTP error with an OpenAI error object."""
    body = json.dumps({"error": {"message": message, **error}})
    return Step(status=status, body=body, headers={"content-type": "application/json", **(headers or {})})


def garbage(text: str, kind: str = "text/html") -> Step:
    """An answer that is not what was asked for."""
    return Step(body=text, headers={"content-type": kind})


async def silence(step: Step) -> None:
    """What a step waits for before it goes on, or breaks off."""
    await asyncio.sleep(step.stall)
    if step.hold is not None:
        await step.hold.wait()


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def users(self) -> list[str]:
        """What the user said, latest first."""
        # Chat, Anthropic and Ollama; Responses; Gemini.
        items: list[dict[str, Any]] = []
        for name in ("messages", "input", "contents"):
            items = items or self.json.get(name) or []
        said = (item for item in reversed(items) if item.get("role") == "user")
        return [text(item.get("content") or item.get("parts") or "") for item in said]


Script = Sequence[Step] | Mapping[str, Sequence[Step]] | Callable[[Asked], Step]
OVER = fail(400, "The script is over: nobody expected this request.")


class Cue:
    """Finds the step for a request. With `loop` a list begins anew when it is used up."""

    def __init__(self, script: Script, *, loop: bool = False) -> None:
        self._script = script
        self._loop = loop
        self._used: dict[str, int] = {}

    def step(self, asked: Asked) -> Step:
        if callable(self._script):
            return self._script(asked)
        if not isinstance(self._script, Mapping):
            return self._next("", self._script)
        for text in asked.users:
            for key, steps in self._script.items():
                if key in text:
                    return self._next(key, steps)
        return OVER

    def _next(self, key: str, steps: Sequence[Step]) -> Step:
        used = self._used.get(key, 0)
        self._used[key] = used + 1
        if used < len(steps):
            return steps[used]
        return steps[used % len(steps)] if self._loop and steps else OVER


def load(script: Any) -> Script:
    """A script out of JSON: a list of steps, or a mapping from text to lists of steps."""
    if isinstance(script, list):
        return [_step(**step) for step in cast("list[dict[str, Any]]", script)]
    return {key: [_step(**step) for step in steps] for key, steps in script.items()}


def _step(*, calls: Sequence[tuple[str, Mapping[str, Any]]] = (), **how: Any) -> Step:
    return Step(calls=tuple((name, arguments) for name, arguments in calls), **how)


def text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


# The marks for the caches of Anthropic and Bedrock, which move with the conversation's end.
MARKS = (b',"cache_control":{"type":"ephemeral"}', b',{"cachePoint":{"type":"default"}}')


def assert_extends(requests: Sequence[Asked]) -> None:
    """Each request of a session begins with the bytes of the one before, so that the model's cache can be used.

    Marks do not count: they are no part of what the model reads.
    """
    for before, after in pairwise(unmarked(asked.body) for asked in requests):
        kept = before.removesuffix(b"]}")
        assert after.startswith(kept), f"The prefix changed after {_common(kept, after)} bytes."


def unmarked(body: bytes) -> bytes:
    for mark in MARKS:
        body = body.replace(mark, b"")
    return body


def _common(one: bytes, other: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
