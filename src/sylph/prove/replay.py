"""`sylph prove replay`: runs every session again from its log, and scripted ones on top, and compares byte by byte."""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from sylph.core.provider import Provider
from sylph.engine.divergence import Divergence
from sylph.engine.log import Log
from sylph.engine.replay import Dialects, Recording, from_log, replay
from sylph.engine.runtime import Parts
from sylph.engine.seal import erased
from sylph.net.http import Client
from sylph.prove.actor import Actor, build
from sylph.prove.fuse import Fuse
from sylph.prove.outside import Sink
from sylph.prove.place import Place, Setting
from sylph.prove.scenarios import SCENARIOS


class Row(msgspec.Struct, kw_only=True):
    """What came of one session. One that was erased from cannot be compared, and is left out."""

    session: str
    scenario: str = ""
    events: int = 0
    prompts: int = 0
    left_out: bool = False
    divergence: Divergence | None = None


class Report(msgspec.Struct, kw_only=True):
    rows: list[Row] = []
    seconds: float = 0.0

    @property
    def diverged(self) -> list[Row]:
        return [row for row in self.rows if row.divergence]

    @property
    def compared(self) -> list[Row]:
        return [row for row in self.rows if not row.left_out]


async def sessions(log: Log, ids: Sequence[str], parts: Parts, dialects: Dialects) -> Report:
    """Replays sessions of a store."""
    return await _report([("", from_log(log, id)) for id in ids], parts, dialects)


async def scenarios(path: str) -> Report:
    """Plays every scenario, then plays it again from its log."""
    report = Report()
    for name in SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="sylph-prove-") as folder:
            recordings, parts = await _played(name, Place(Path(folder)), path)
        found = await _report([(name, each) for each in recordings], parts, lambda name, of=parts: _own(of, name))
        report.rows += found.rows
        report.seconds += found.seconds
    return report


async def _report(recordings: Sequence[tuple[str, Recording]], parts: Parts, dialects: Dialects) -> Report:
    report, began = Report(), time.monotonic()
    for scenario, recording in recordings:
        if any(erased(record) for record in recording.records):
            report.rows.append(Row(session=recording.session, scenario=scenario, left_out=True))
            continue
        done = await replay(recording, parts, dialects)
        row = Row(session=done.session, scenario=scenario, events=done.matched, prompts=done.prompts)
        row.divergence = done.divergence
        report.rows.append(row)
    report.seconds = time.monotonic() - began
    return report


async def _played(name: str, place: Place, path: str) -> tuple[list[Recording], Parts]:
    async with _served() as sink:
        setting = Setting(scenario=name, port=sink.port, path=path, kind="none")
        place.make(setting)
        client = Client()
        try:
            async with build(SCENARIOS[setting.scenario], setting, place, Fuse("none", 0), client) as engine:
                await Actor(engine, SCENARIOS[name], place).perform()
                log = engine.log
                return [from_log(log, session) for session in log.sessions()], engine.parts
        finally:
            await client.close()


@asynccontextmanager
async def _served() -> AsyncGenerator[Sink, None]:
    """The world outside, with somebody who answers there."""
    sink, over = Sink(), asyncio.Event()

    def serve() -> None:
        while not over.is_set():
            sink.serve()

    task = asyncio.create_task(asyncio.to_thread(serve))
    try:
        yield sink
    finally:
        over.set()
        await task
        sink.close()


def _own(parts: Parts, name: str) -> Sequence[Provider]:
    return (parts.gateway.providers[name],)
