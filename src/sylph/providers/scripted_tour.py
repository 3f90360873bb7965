"""The tour's stand-in for a model: it says scripted lines, and says so. Everything it sets in motion is real."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.messages import Message, ToolCall, Usage
from sylph.core.provider import ArgumentsChunk, Chunk, ModelInfo, ModelReply, ModelRequest, TextChunk

NAME = "tour"
PAUSE = 0.012

BROKEN_PROGRAM = """\
def greet(name):
    return "Hello, " + name
"""

PROGRAM_TEST = """\
import unittest

from greet import greet


class Greeting(unittest.TestCase):
    def test_somebody(self):
        self.assertEqual(greet("Ada"), "Hello, Ada!")


unittest.main()
"""

SLOW_COMMAND = "echo begun >> journal.txt; sleep 2; echo done >> journal.txt; echo the slow job is done"

TourLine = Callable[[str], ModelReply]
"""The latest result in, the next thing to say out."""


class TourProvider:
    """Two scripts, one per model name: `fix` repairs a small program, `job` runs something slow."""

    name = NAME

    def body(self, request: ModelRequest) -> bytes:
        return msgspec.json.encode([request.model, request.system, request.tools, request.messages])

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        script = SCRIPTS.get(request.model)
        if script is None:
            known = ", ".join(f"{NAME}/{name}" for name in SCRIPTS)
            raise ProviderError("not_found", f"The tour has no script {request.model!r}; it has {known}.")
        said, result = _script_position(request.messages)
        reply = script[min(said, len(script) - 1)](result)
        for word in _split_words(reply.text):
            await asyncio.sleep(PAUSE)
            yield TextChunk(word)
        for index, call in enumerate(reply.calls):
            yield ArgumentsChunk(index, call.name, call.arguments)
        yield replace(reply, usage=Usage(len(body) // 4, len(reply.text) // 4))

    async def models(self) -> tuple[ModelInfo, ...]:
        return tuple(self.info(name) for name in SCRIPTS)

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(name=model, window=32_000, price_in=0, price_out=0)

    async def close(self) -> None:
        """There is nothing to close."""


def _script_position(messages: tuple[Message, ...]) -> tuple[int, str]:
    """How many lines were said since the person last spoke, and the latest result. The script needs no memory."""
    said, result = 0, ""
    for message in reversed(messages):
        if message.role == "user" and not message.text.startswith("<context"):
            break
        said += message.role == "assistant"
        result = result or (message.text if message.role == "tool" else "")
    return said, result


def _split_words(text: str) -> list[str]:
    parts = text.split(" ")
    return [part + " " for part in parts[:-1]] + parts[-1:] if text else []


def _call_tools(text: str, *wanted: tuple[str, dict[str, object]]) -> TourLine:
    calls = tuple(
        ToolCall(f"tour{number}", name, msgspec.json.encode(arguments).decode())
        for number, (name, arguments) in enumerate(wanted)
    )
    return lambda _: ModelReply(text=text, finish="calls", calls=calls)


def _show_plan(text: str, status: str) -> TourLine:
    steps = ("look at the program and its test", "repair it", "run the test")
    return _call_tools(text, ("plan", {"steps": [{"text": step, "status": status} for step in steps]}))


def _stop_if_refused(line: TourLine) -> TourLine:
    def answer(result: str) -> ModelReply:
        if "not permitted" in result:
            return ModelReply(
                text="You said no, so I leave it at that: nothing was changed by this call.", finish="stop"
            )
        return line(result)

    return answer


def _report_test(result: str) -> ModelReply:
    if "[exit 0]" not in result:
        return ModelReply(text=f"The test still fails, and I say so:\n{result}", finish="stop")
    return _show_plan("", "done")(result)


def _inspect_journal(result: str) -> ModelReply:
    if "unknown" not in result.lower():
        return ModelReply(
            text=f"The job ended, and its real output and exit code are in the log: {result}", finish="stop"
        )
    return _call_tools(
        "I am told that Sylph was killed while the job ran and that its outcome is unknown. "
        "I do not run it again; I look at what is there.",
        ("read", {"path": "journal.txt"}),
    )(result)


def _report_outcome(result: str) -> ModelReply:
    found = "the job had finished" if "done" in result else "the job has begun and not finished yet"
    return ModelReply(
        text=f"journal.txt has {result.split()!r}: {found}. It ran once; nothing was repeated.", finish="stop"
    )


SCRIPTS: dict[str, tuple[TourLine, ...]] = {
    "fix": (
        _show_plan("(These lines are scripted; the rest is real.) First a plan.", "pending"),
        _call_tools(
            "Now I read both files at once.", ("read", {"path": "greet.py"}), ("read", {"path": "test_greet.py"})
        ),
        _call_tools(
            "The test wants an exclamation mark that the program does not give. I change one line.",
            ("edit", {"path": "greet.py", "old": '"Hello, " + name', "new": '"Hello, " + name + "!"'}),
        ),
        _stop_if_refused(_call_tools("And I run the test.", ("shell", {"command": "python3 test_greet.py"}))),
        _stop_if_refused(_report_test),
        lambda _: ModelReply(
            text="Done: greet.py now ends the greeting with an exclamation mark, and its test passes (exit 0).",
            finish="stop",
        ),
    ),
    "job": (
        _call_tools("(Scripted.) I start a job that takes two seconds.", ("shell", {"command": SLOW_COMMAND})),
        _inspect_journal,
        _report_outcome,
    ),
}
