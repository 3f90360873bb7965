"""Streams that are cut, delayed, restarted and killed end with exactly the log: no gap, no repeat."""

import asyncio
import random
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.flows.program import Model, Sylph
from tests.http.follower import Caller, Follower, logged, model, rested
from tests.http.served import Served, serving
from tests.http.tap import Tap
from tests.model_server import ModelServer
from tests.patience import PATIENCE, eventually

SEEDS = (1, 2, 3)


@pytest.fixture
async def scripted(model: Model) -> ModelServer:
    return await model(script)


script = model


@pytest.fixture
async def sessions(served: Served) -> AsyncGenerator[list[str], None]:
    made = [await served.session(model="openai/scripted", mode="trust", title=f"Number {n}") for n in range(3)]
    yield [each["id"] for each in made]


async def work(served: Served, session: str) -> None:
    for text in ("work", "talk"):
        await served.say(session, text)
        await rested(served, session)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_stream_that_is_cut_again_and_again_tells_the_log_once(
    served: Served, sessions: list[str], seed: int
) -> None:
    chance, session = random.Random(seed), sessions[0]
    follower = Follower(f"/api/v1/sessions/{session}/events")
    working = asyncio.create_task(work(served, session))
    while not working.done():
        await follower.read(served, chance.randint(300, 9000), 0.3)
        await asyncio.sleep(chance.choice((0, 0, 0.01, 0.1)))
    await working
    await follower.until(served, session, (await rested(served, session))[session])
    assert follower.facts[session] == await logged(served.sylph, session)


@pytest.mark.parametrize("seed", SEEDS)
async def test_one_stream_over_three_sessions_is_cut_and_tells_each_log_once(
    served: Served, sessions: list[str], seed: int
) -> None:
    chance = random.Random(seed)
    follower = Follower(f"/api/v1/stream?sessions={','.join(sessions)}")
    working = asyncio.gather(*(work(served, session) for session in sessions))
    while not working.done():
        await follower.read(served, chance.randint(300, 30_000), 0.3)
        await asyncio.sleep(chance.choice((0, 0.01, 0.1)))
    await working
    ends = await rested(served, *sessions)
    for session in sessions:
        await follower.until(served, session, ends[session])
    for session in sessions:
        assert follower.facts[session] == await logged(served.sylph, session)


async def test_a_websocket_is_cut_and_tells_each_log_once(served: Served, sessions: list[str]) -> None:
    chance, caller = random.Random(7), Caller()
    working = asyncio.gather(*(work(served, session) for session in sessions))
    while not working.done():
        await caller.read(served, sessions, chance.randint(1, 60), 0.3)
    await working
    ends = await rested(served, *sessions)
    await caller.until(served, ends, 8)
    for session in sessions:
        assert caller.facts[session] == await logged(served.sylph, session)


@pytest.mark.parametrize("hard", [True, False], ids=["kill -9", "restart"])
async def test_a_server_that_ends_in_the_middle_of_a_turn_loses_nothing_of_a_stream(
    sylph: Sylph, scripted: ModelServer, *, hard: bool
) -> None:
    follower, chance, session = Follower(""), random.Random(11), ""
    caller = Caller()
    for life in range(3):
        async with serving(sylph) as served:
            if not session:
                session = (await served.session(model="openai/scripted", mode="trust"))["id"]
                follower.path = f"/api/v1/stream?sessions={session}"
            # The next life goes on with what the one before left open.
            await served.say(session, "work")
            reading = asyncio.create_task(follower.read(served))
            calling = asyncio.create_task(caller.read(served, [session]))
            if life < 2:
                await scripted.until(lambda life=life: len(scripted.requests) > 2 * life + 1)
                await asyncio.sleep(chance.random() * 0.2)
                served.kill() if hard else served.process.terminate()
                async with asyncio.timeout(PATIENCE):
                    await asyncio.gather(reading, calling)
                continue
            end = (await rested(served, session))[session]
            got = follower.facts[session], caller.facts[session]
            await eventually(lambda got=got, end=end: all(each and each[-1][0] >= end for each in got), "all facts")
            reading.cancel()
            calling.cancel()
            await asyncio.wait({reading, calling})
    told = await logged(sylph, session)
    assert len(told) > 30
    assert follower.facts[session] == told
    assert caller.facts[session] == told


async def test_fifty_readers_of_one_session_get_the_same(served: Served, sessions: list[str]) -> None:
    session = sessions[0]
    followers = [Follower(f"/api/v1/sessions/{session}/events") for _ in range(50)]

    for follower in followers:
        follower.enough = lambda follower=follower: follower.told[-1].type == "turn.ended"
    async with asyncio.timeout(PATIENCE):
        reading = asyncio.gather(*(follower.read(served) for follower in followers))
        await eventually(lambda: all(follower.told for follower in followers), "fifty who follow")
        await served.say(session, "talk")
        await reading
    log = await logged(served.sylph, session)
    for follower in followers:
        assert follower.facts[session] == log[: len(follower.facts[session])]
        assert sum(told.type == "delta.text" for told in follower.told) > 10
    assert len({len(follower.told) for follower in followers}) == 1


@pytest.fixture
def stubborn(sylph: Sylph, tmp_path: Path) -> None:
    """Lets the server wait as good as for ever for those who do not take what it says, if it waits for them at all."""
    (tmp_path / "stubborn").mkdir()
    (tmp_path / "stubborn" / "sitecustomize.py").write_text(
        "from sylph.interfaces.http.server import serve\nserve.REQUEST_GRACE = 3600\n"
    )
    sylph.environ["PYTHONPATH"] = str(tmp_path / "stubborn")


@pytest.mark.usefixtures("stubborn")
async def test_the_end_of_the_server_ends_all_streams_at_once(served: Served, sessions: list[str]) -> None:
    bearer = {"Authorization": f"Bearer {served.token}"}
    paths = [f"/api/v1/sessions/{sessions[0]}/events", f"/api/v1/stream?sessions={sessions[0]}"]
    taps = [await Tap.open(served.url, path, bearer) for path in paths * 5]
    reading = asyncio.gather(*(drained(tap) for tap in taps))
    # One of them takes nothing of a long log, so that the server waits in the middle of a write.
    stuck = await Tap.open(served.url, paths[0], bearer, gulp=4096)
    stuck.pause()
    await served.say(sessions[0], "much")
    await rested(served, sessions[0])
    served.process.terminate()
    async with asyncio.timeout(PATIENCE):
        await reading
        assert await served.process.wait() == 0
    stuck.cut()


async def drained(tap: Tap) -> None:
    async for _ in tap.events():
        pass
    tap.cut()
