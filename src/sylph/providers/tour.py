"""The tour's stand-in for a model: it says scripted lines, and says so. Everything it sets in motion is real."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.messages import Message, ToolCall, Usage
from sylph.core.provider import Arguments, Chunk, ModelInfo, Reply, Request, Text

NAME = "tour"
PAUSE = 0.012

BROKEN = """\
def greet(name):
    return "Hello, " + name
"""

TEST = """\
import unittest

from greet import greet


class Greeting(unittest.TestCase):
    def test_somebody(self):
        self.assertEqual(greet("Ada"), "Hello, Ada!")


unittest.main()
"""

SLOW = "echo begun >> journal.txt; sleep 2; echo done >> journal.txt; echo the slow job is done"

Line = Callable[[str], Reply]
"""The latest result in, the next thing to say out."""


class Tour:
    """Two scripts, one per model name: `fix` repairs a small program, `job` runs something slow."""

    name = NAME

    def body(self, request: Request) -> bytes:
        return msgspec.json.encode([request.model, request.system, request.tools, request.messages])

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        script = SCRIPTS.get(request.model)
        if script is None:
            known = ", ".join(f"{NAME}/{name}" for name in SCRIPTS)
            raise ProviderError("not_found", f"The tour has no script {request.model!r}; it has {known}.")
        said, result = _so_far(request.messages)
        reply = script[min(said, len(script) - 1)](result)
        for word in _words(reply.text):
            await asyncio.sleep(PAUSE)
            yield Text(word)
        for index, call in enumerate(reply.calls):
            yield Arguments(index, call.name, call.arguments)
        yield replace(reply, usage=Usage(len(body) // 4, len(reply.text) // 4))

    async def models(self) -> tuple[ModelInfo, ...]:
        return tuple(self.info(name) for name in SCRIPTS)

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(name=model, window=32_000, price_in=0, price_out=0)

    async def close(self) -> None:
        """There is nothing to close."""


def _so_far(messages: tuple[Message, ...]) -> tuple[int, str]:
    """How many lines were said since the person last spoke, and the latest result. The script needs no memory."""
    said, result = 0, ""
    for message in reversed(messages):
        if message.role == "user" and not message.text.startswith("<context"):
            break
        said += message.role == "assistant"
        result = result or (message.text if message.role == "tool" else "")
    return said, result


def _words(text: str) -> list[str]:
    parts = text.split(" ")
    return [part + " " for part in parts[:-1]] + parts[-1:] if text else []


def _calls(text: str, *wanted: tuple[str, dict[str, object]]) -> Line:
    calls = tuple(
        ToolCall(f"tour{number}", name, msgspec.json.encode(arguments).decode())
        for number, (name, arguments) in enumerate(wanted)
    )
    return lambda _: Reply(text=text, finish="calls", calls=calls)


def _plan(text: str, status: str) -> Line:
    steps = ("look at the program and its test", "repair it", "run the test")
    return _calls(text, ("plan", {"steps": [{"text": step, "status": status} for step in steps]}))


def _unless_refused(line: Line) -> Line:
    def answer(result: str) -> Reply:
        if "not permitted" in result:
            return Reply(text="You said no, so I leave it at that: nothing was changed by this call.", finish="stop")
        return line(result)

    return answer


def _tested(result: str) -> Reply:
    if "[exit 0]" not in result:
        return Reply(text=f"The test still fails, and I say so:\n{result}", finish="stop")
    return _plan("", "done")(result)


def _looked(result: str) -> Reply:
    if "unknown" not in result.lower():
        return Reply(text=f"The job ended, and its real output and exit code are in the log: {result}", finish="stop")
    return _calls(
        "I am told that Sylph was killed while the job ran and that its outcome is unknown. "
        "I do not run it again; I look at what is there.",
        ("read", {"path": "journal.txt"}),
    )(result)


def _judged(result: str) -> Reply:
    found = "the job had finished" if "done" in result else "the job has begun and not finished yet"
    return Reply(text=f"journal.txt has {result.split()!r}: {found}. It ran once; nothing was repeated.", finish="stop")


SCRIPTS: dict[str, tuple[Line, ...]] = {
    "fix": (
        _plan("(These lines are scripted; the rest is real.) First a plan.", "pending"),
        _calls("Now I read both files at once.", ("read", {"path": "greet.py"}), ("read", {"path": "test_greet.py"})),
        _calls(
            "The test wants an exclamation mark that the program does not give. I change one line.",
            ("edit", {"path": "greet.py", "old": '"Hello, " + name', "new": '"Hello, " + name + "!"'}),
        ),
        _unless_refused(_calls("And I run the test.", ("shell", {"command": "python3 test_greet.py"}))),
        _unless_refused(_tested),
        lambda _: Reply(
            text="Done: greet.py now ends the greeting with an exclamation mark, and its test passes (exit 0).",
            finish="stop",
        ),
    ),
    "job": (
        _calls("(Scripted.) I start a job that takes two seconds.", ("shell", {"command": SLOW})),
        _looked,
        _judged,
    ),
}
