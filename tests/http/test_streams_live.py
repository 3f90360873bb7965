"""What is being written when somebody comes to listen: it is told at once, and the rest piece by piece."""

import asyncio

import pytest
from tests.flows.program import Model
from tests.http.served import Served
from tests.model_server import ModelServer, call, say

WORDS = [f"word{number} " for number in range(40)]
COMMAND = "for n in 1 2 3 4 5 6; do echo tick $n; sleep 0.15; done"


@pytest.fixture
async def scripted(model: Model) -> ModelServer:
    steps = [say("".join(WORDS), chunk=7, delay=0.03), call("shell", command=COMMAND), say("Done.")]
    return await model(steps)


async def heard(served: Served, session: str, after: int) -> tuple[str, str, str]:
    """What somebody who comes now hears of the answer, of the command's output, and in the end as a fact."""
    text = output = ""
    async with asyncio.timeout(20):
        async for event in served.events(f"/api/v1/sessions/{session}/events?after={after}"):
            data = (event.data or {}).get("data", {})
            match event.type:
                case "live":
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


async def test_who_comes_late_reads_the_whole_answer(served: Served) -> None:
    session = (await served.session(mode="trust"))["id"]
    await served.say(session, "Talk.")
    await served.until(session, "delta.text")
    await asyncio.sleep(0.3)
    first = await asyncio.gather(*(heard(served, session, after) for after in (0, 3)))
    for text, _, whole in first:
        assert text == whole == "".join(WORDS)
    ended = await served.until(session, after=3)
    await served.say(session, "Run it.")
    await served.until(session, "tool.output", after=ended[-1].data["seq"])
    await asyncio.sleep(0.3)
    _, output, whole = await heard(served, session, ended[-1].data["seq"])
    assert output == "".join(f"tick {number}\n" for number in range(1, 7))
    assert output.strip() in whole
