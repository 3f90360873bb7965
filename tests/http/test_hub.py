"""The lines of all clients, in one process: signs of life, patience, and what becomes of those who take nothing."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.patience import PATIENCE, eventually

from sylph.core.commands import Rename
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.http.hub.cursor import StreamCursor
from sylph.interfaces.http.hub.frames import MultiplexedSseFraming, SessionSseFraming, WebSocketFraming
from sylph.interfaces.http.hub.stream_hub import StreamHub, StreamTiming
from sylph.interfaces.http.hub.subscriber import StreamSubscriber
from sylph.interfaces.http.kit.principal import OWNER
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.testing import begin_session, play_turn, say, scripted_runtime


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[Runtime, None]:
    async with scripted_runtime(tmp_path, [say("Hello.")] * 50) as made:
        yield made


async def _never() -> None:
    await asyncio.Event().wait()


async def _told(hub: StreamHub, line: StreamSubscriber, wanted: bytes) -> bytes:
    """Serves a line until it was told this."""
    told, enough = bytearray(), asyncio.Event()

    async def write(data: bytes) -> None:
        told.extend(data)
        if wanted in told:
            enough.set()

    serving = asyncio.create_task(hub.serve_subscriber(line, write, _never()))
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
    hub.end_all()
    await serving
    return bytes(told)


async def test_silence_is_broken_by_a_sign_of_life(engine: Runtime) -> None:
    hub = StreamHub(engine, StreamTiming(tick=0.02, heartbeat=0.05))
    assert await _told(hub, hub.new_subscriber(OWNER, SessionSseFraming(StreamCursor())), b": beat\n\n")
    hub = StreamHub(engine, StreamTiming(tick=0.02, heartbeat=0.05))
    assert b'{"type":"beat","ts":' in await _told(hub, hub.new_subscriber(OWNER, WebSocketFraming()), b"beat")


async def test_a_client_that_takes_nothing_is_let_go(engine: Runtime, tmp_path: Path) -> None:
    hub = StreamHub(engine, StreamTiming(tick=0.02, write_timeout=0.1))
    line = hub.new_subscriber(OWNER, SessionSseFraming(StreamCursor()))
    hub.follow_sessions(line, {await begin_session(engine, tmp_path): 0})

    async def write(_: bytes) -> None:
        await _never()

    async with asyncio.timeout(PATIENCE):
        await hub.serve_subscriber(line, write, _never())
    assert hub.find_subscriber(line.client, OWNER) is None
    assert not line.reader.after


async def test_there_are_only_so_many_lines(engine: Runtime) -> None:
    hub = StreamHub(engine, StreamTiming(max_streams=1))
    serving = asyncio.create_task(hub.serve_subscriber(hub.new_subscriber(OWNER, WebSocketFraming()), _take, _never()))
    await asyncio.sleep(0)
    with pytest.raises(AccessDenied, match="open already") as refused:
        hub.new_subscriber(OWNER, WebSocketFraming())
    assert refused.value.trouble.kind == "too_many"
    hub.end_all()
    await serving
    assert hub.new_subscriber(OWNER, WebSocketFraming())


async def _take(_: bytes) -> None:
    pass


async def test_a_session_that_is_purged_ends_its_line(engine: Runtime, tmp_path: Path) -> None:
    hub, session = StreamHub(engine), await begin_session(engine, tmp_path)
    line = hub.new_subscriber(OWNER, SessionSseFraming(StreamCursor()))
    line.alone = True
    hub.follow_sessions(line, {session: 0})
    told = bytearray()

    async def write(data: bytes) -> None:
        told.extend(data)

    serving = asyncio.create_task(hub.serve_subscriber(line, write, _never()))
    await eventually(lambda: b"event: session.created" in told, "the line to be served")
    await engine.purge_session(session)
    async with asyncio.timeout(PATIENCE):
        await serving
    assert told.index(b"event: session.purged") < told.index(b"event: stream.gone")


async def test_what_another_process_does_to_the_store_is_told(engine: Runtime, tmp_path: Path) -> None:
    hub = StreamHub(engine, StreamTiming(tick=0.02))
    session, other = await begin_session(engine, tmp_path), await begin_session(engine, tmp_path)
    line, told = hub.new_subscriber(OWNER, MultiplexedSseFraming(StreamCursor())), bytearray()
    await hub.watch_changes(line)
    hub.follow_sessions(line, {session: 0, other: 0})

    async def write(data: bytes) -> None:
        told.extend(data)

    async def until(wanted: bytes) -> None:
        await eventually(lambda: wanted in told, repr(wanted))

    serving = asyncio.create_task(hub.serve_subscriber(line, write, _never()))
    async with scripted_runtime(tmp_path, []) as elsewhere:
        await elsewhere.send(session, Rename(title="From elsewhere"))
        await until(b"event: session.renamed")
        await until(b'"title":"From elsewhere","workspace"')
        new = await begin_session(elsewhere, tmp_path)
        await until(b'"type":"session.changed","id":"%s"' % new.encode())
        await elsewhere.purge_session(other)
        await until(b'{"type":"session.removed","id":"%s"}' % other.encode())
        await until(b'{"type":"stream.gone","session":"%s"}' % other.encode())
    hub.end_all()
    await serving


async def test_sessions_that_rest_are_let_go_of(engine: Runtime, tmp_path: Path) -> None:
    sessions = [await begin_session(engine, tmp_path) for _ in range(20)]
    for session in sessions:
        await play_turn(engine, session, "hello")
        await engine.wait_until_idle(session)
    held = [id for id, _ in engine._sessions]  # pyright: ignore[reportPrivateUsage]
    assert len(held) <= 17
    assert held[-1] == sessions[-1]
    # Whoever was let go of goes on as if nothing was.
    await play_turn(engine, sessions[0], "once more")
    assert (await engine.find_session(sessions[0])).turns == 2
