"""What is being written when somebody comes to listen: it is told at once, and the rest piece by piece."""

import asyncio

import pytest
from tests.flows.program import Model
from tests.http.served import Served
from tests.model_server import ModelServer, call, say
from tests.patience import PATIENCE, waiting

WORDS = [f"word{number} " for number in range(40)]
COMMAND = f"for n in 1 2 3; do echo tick $n; done; {waiting('go')}; for n in 4 5 6; do echo tick $n; sleep 0.1; done"


@pytest.fixture
def gate() -> asyncio.Event:
    """What the answer waits for after its first half."""
    return asyncio.Event()


@pytest.fixture
async def scripted(model: Model, gate: asyncio.Event) -> ModelServer:
    talk = say("".join(WORDS), chunk=7, delay=0.005, hold=gate, at="stream")
    return await model([talk, call("shell", command=COMMAND), say("Done.")])


async def heard(served: Served, session: str, after: int, came: asyncio.Semaphore) -> tuple[str, str, str]:
    """What somebody who comes now hears of the answer, of the command's output, and in the end as a fact."""
    text = output = ""
    async with asyncio.timeout(PATIENCE):
        async for event in served.events(f"/api/v1/sessions/{session}/events?after={after}"):
            data = (event.data or {}).get("data", {})
            match event.type:
                case "live":
                    came.release()
                    text, output = data.get("text", ""), "".join(data.get("outputs", {}).values())
                case "delta.text":
                    text += data["text"]
                case "tool.output":
                    output += data["text"]
                case "model.responded" if data["text"]:
                    return text, "", data["text"]
                case "tool.finished":
                    return "", output, data["output"]
                case _:
                    pass
    raise AssertionError("The stream ended.")


async def test_who_comes_late_reads_the_whole_answer(served: Served, gate: asyncio.Event) -> None:
    came = asyncio.Semaphore(0)
    session = (await served.session(mode="trust"))["id"]
    await served.say(session, "Talk.")
    await served.until(session, "delta.text")
    first = [asyncio.create_task(heard(served, session, after, came)) for after in (0, 3)]
    for _ in first:
        await came.acquire()
    gate.set()
    for text, _, whole in await asyncio.gather(*first):
        assert text == whole == "".join(WORDS)
    ended = await served.until(session, after=3)
    await served.say(session, "Run it.")
    await served.until(session, "tool.output", after=ended[-1].data["seq"])
    late = asyncio.create_task(heard(served, session, ended[-1].data["seq"], came))
    await came.acquire()
    (served.sylph.workspace / "go").touch()
    _, output, whole = await late
    assert output == "".join(f"tick {number}\n" for number in range(1, 7))
    assert output.strip() in whole
