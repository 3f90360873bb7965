"""A model server that follows a script: real HTTP over loopback, and every trouble a real one can make.

In a test:

    async with ModelServer([say("Hello"), call("read", path="a.txt"), say("Done")]) as server:
        ...                       # server.url is a base URL, server.requests what was asked

As a process, for programs under test and benches; it prints its base URL:

    python tests/model_server.py --port 0 --script script.json

A script is a list of steps, taken in order; or a mapping from a piece of text to such a list, for whichever request
has that text in its latest matching user message; or, in-process, a function from the request to a step.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
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


def say(text: str, **how: Any) -> Step:
    return Step(text=text, **how)


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
        return [_text(said["content"]) for said in reversed(self.json["messages"]) if said["role"] == "user"]


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


class ChatDialect:
    """Steps as OpenAI chat completions."""

    path = "/chat/completions"

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        """The events of a stream, and how many of them come before its trouble: half of what it says."""
        events = [{"role": "assistant", "content": ""}, *self._deltas(step)]
        frames = [_event(_packet(delta=delta)) for delta in events]
        middle = len(frames) // 2 + 1
        if step.error is not None:
            return [*frames[:middle], _event({"error": step.error})], middle
        if finish := self._finish(step):
            frames.append(_event(_packet(delta={}, finish_reason=finish)))
        if finish or step.done:
            frames.append(_event({**_packet(), "usage": self._usage(step)}))
        return [*frames, b"data: [DONE]\n\n"] if step.done else frames, middle

    def document(self, step: Step) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
        if step.reasoning:
            message["reasoning_content"] = step.reasoning
        if step.calls:
            message["tool_calls"] = [self._call(step, at) for at in range(len(step.calls))]
        packet = _packet(message=message, finish_reason=self._finish(step))
        return json.dumps({**packet, "object": "chat.completion", "usage": self._usage(step)}).encode()

    def _deltas(self, step: Step) -> list[dict[str, Any]]:
        deltas = [{"reasoning_content": piece} for piece in _cut(step.reasoning, step.chunk)]
        deltas += [{"content": piece} for piece in _cut(step.text, step.chunk)]
        for at in range(len(step.calls)):
            deltas += self._call_deltas(step, at)
        return deltas

    def _call_deltas(self, step: Step, at: int) -> list[dict[str, Any]]:
        whole = self._call(step, at)
        function = whole["function"]
        if step.legacy:
            return [{"function_call": {"name": function["name"], "arguments": ""}}] + [
                {"function_call": {"arguments": piece}} for piece in _cut(function["arguments"], step.chunk)
            ]
        if step.objects or not step.pieces:
            return [{"tool_calls": [whole]}]
        place = {"index": at} if step.indexes else {}
        opening = {**whole, "function": {"name": function["name"], "arguments": ""}}
        pieces = [{**place, "function": {"arguments": piece}} for piece in _cut(function["arguments"], step.chunk)]
        return [{"tool_calls": [piece]} for piece in (opening, *pieces)]

    def _call(self, step: Step, at: int) -> dict[str, Any]:
        name, arguments = step.calls[at]
        given = dict(arguments) if step.objects else json.dumps(arguments, ensure_ascii=False)
        place = {"index": at} if step.indexes else {}
        identity = {"id": f"call_{name}_{at}"} if step.ids else {}
        return {**place, **identity, "type": "function", "function": {"name": name, "arguments": given}}

    def _finish(self, step: Step) -> str:
        if step.finish is not None:
            return step.finish
        return "tool_calls" if step.calls else "stop"

    def _usage(self, step: Step) -> Mapping[str, Any]:
        if step.usage is not None:
            return step.usage
        return {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


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
        return not (step.delay or step.split or step.stall or step.drop)


def answer(step: Step, dialect: ChatDialect, *, stream: bool) -> Answer:
    if step.body is not None or step.whole or not stream:
        body = step.body.encode() if step.body is not None else dialect.document(step)
        headers = {"content-type": "application/json", **step.headers, "content-length": str(len(body))}
        return Answer(step, _head(step.status, headers), (body[: len(body) // 2], body[len(body) // 2 :]), 1)
    headers = {"content-type": "text/event-stream", **step.headers, "transfer-encoding": "chunked"}
    frames, middle = dialect.frames(step)
    frames = [b": keep-alive\n\n"] * step.keepalives + frames
    if step.split:
        joined = b"".join(frames)
        frames = [joined[at : at + step.split] for at in range(0, len(joined), step.split)]
    chunked = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames]
    return Answer(step, _head(step.status, headers), (*chunked, b"0\r\n\r\n"), step.keepalives + middle)


class ModelServer:
    """Serves a script. `requests` holds every completion that was asked for, `broken` how many were given up on."""

    def __init__(
        self,
        script: Script = (),
        *,
        loop: bool = False,
        models: Sequence[str | Mapping[str, Any]] = ("scripted",),
        port: int = 0,
    ) -> None:
        self.requests: list[Asked] = []
        self.broken = 0
        self.connections = 0
        self._cue = Cue(script, loop=loop)
        self._dialects = {f"/v1{dialect.path}": dialect for dialect in (ChatDialect(),)}
        self._models = answer(Step(body=_listing(models)), ChatDialect(), stream=False)
        self._port = port
        self._changed = asyncio.Event()
        self._made: dict[tuple[int, bool], Answer] = {}

    @property
    def url(self) -> str:
        """What goes into OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> "ModelServer":
        loop = asyncio.get_running_loop()
        self._lines: set[Line] = set()
        self._server = await loop.create_server(lambda: Line(self, self._lines), "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for line in tuple(self._lines):
            line.transport.abort()
        await self._server.wait_closed()

    async def until(self, true: Callable[[], bool], seconds: float = 5.0) -> None:
        """Waits for something to become true of this server."""
        async with asyncio.timeout(seconds):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    def hang_up(self) -> None:
        """Closes every connection, as a server does that has heard nothing for a while."""
        for line in tuple(self._lines):
            line.transport.close()

    def give_up(self) -> None:
        """A client went away in the middle of an answer."""
        self.broken += 1
        self._changed.set()

    def reply(self, asked: Asked) -> Answer:
        if asked.path == "/v1/models":
            return self._models
        dialect = self._dialects.get(asked.path)
        if dialect is None:
            return answer(fail(404, f"There is nothing at {asked.path}."), ChatDialect(), stream=False)
        self.requests.append(asked)
        self._changed.set()
        step = self._cue.step(asked)
        # Looked for, not parsed: benches send long bodies, and we must not be what they measure.
        stream = b'"stream":true' in asked.body or b'"stream": true' in asked.body
        key = (id(step), stream)
        made = self._made.get(key)
        if made is None or made.step is not step:
            made = self._made[key] = answer(step, dialect, stream=stream)
        return made


class Line(asyncio.Protocol):
    """One connection of one client."""

    transport: asyncio.Transport

    def __init__(self, server: ModelServer, lines: "set[Line]") -> None:
        self._server = server
        self._lines = lines
        self._heard = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._lines.add(self)
        self._server.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- the base class says so
        self._lines.discard(self)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self._server.give_up()

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while (asked := self._request()) is not None:
            made = self._server.reply(asked)
            if made.calm:
                self.transport.write(made.head + b"".join(made.frames))
            else:
                self._task = asyncio.get_running_loop().create_task(self._play(made))

    def _request(self) -> Asked | None:
        end = self._heard.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self._heard[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = end + 4 + int(headers.get("content-length", "0"))
        if len(self._heard) < size:
            return None
        body = bytes(self._heard[end + 4 : size])
        del self._heard[:size]
        method, path, _ = first.split(" ", 2)
        return Asked(method, path, headers, body)

    async def _play(self, made: Answer) -> None:
        """Writes an answer that takes its time or ends badly."""
        step = made.step
        if step.at == "head" and await self._trouble(step):
            return
        self.transport.write(made.head)
        for at, frame in enumerate(made.frames):
            if at == made.middle and step.at == "stream" and await self._trouble(step):
                return
            if step.delay or step.split:
                await asyncio.sleep(step.delay)
            self.transport.write(frame)

    async def _trouble(self, step: Step) -> bool:
        """Stalls or breaks off; True if that was the end."""
        await asyncio.sleep(step.stall)
        if step.drop:
            self._task = None
            self.transport.close()
        return step.drop


def assert_extends(requests: Sequence[Asked]) -> None:
    """Each request of a session begins with the bytes of the one before, so that the model's cache can be used."""
    for before, after in pairwise(requests):
        kept = before.body.removesuffix(b"]}")
        assert after.body.startswith(kept), f"The prefix changed after {_common(kept, after.body)} bytes."


def load(script: Any) -> Script:
    """A script out of JSON: a list of steps, or a mapping from text to lists of steps."""
    if isinstance(script, list):
        return [_step(**step) for step in cast("list[dict[str, Any]]", script)]
    return {key: [_step(**step) for step in steps] for key, steps in script.items()}


def _step(*, calls: Sequence[tuple[str, Mapping[str, Any]]] = (), **how: Any) -> Step:
    return Step(calls=tuple((name, arguments) for name, arguments in calls), **how)


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _packet(**choice: Any) -> dict[str, Any]:
    choices = [{"index": 0, "finish_reason": None, **choice}] if choice else []
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": choices,
    }


def _event(packet: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(packet, ensure_ascii=False).encode() + b"\n\n"


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode()


def _listing(models: Sequence[str | Mapping[str, Any]]) -> str:
    data = [{"id": model, "object": "model"} if isinstance(model, str) else dict(model) for model in models]
    return json.dumps({"object": "list", "data": data})


def _common(one: bytes, other: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


async def serve(script: Script, *, port: int, loop: bool) -> None:
    async with ModelServer(script, port=port, loop=loop) as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    options = argparse.ArgumentParser(description="A model server that follows a script.")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--script", type=Path, required=True)
    options.add_argument("--loop", action="store_true", help="begin anew when the script is used up")
    given = options.parse_args()
    script = load(json.loads(given.script.read_text()))
    try:
        asyncio.run(serve(script, port=given.port, loop=given.loop))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
