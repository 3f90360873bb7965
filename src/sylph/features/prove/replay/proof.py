"""`sylph prove replay`: runs every session again from its log, and scripted ones on top, and compares byte by byte."""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from sylph.core.provider import Provider
from sylph.engine.log.hash_chain import is_erased
from sylph.engine.log.store import EventLog
from sylph.engine.runtime.runtime import RuntimeParts
from sylph.features.prove.scenario.fake_service import FakeService
from sylph.features.prove.scenario.fuse import CrashFuse
from sylph.features.prove.scenario.player import ScenarioPlayer, build_runtime
from sylph.features.prove.scenario.scenarios import SCENARIOS
from sylph.features.prove.scenario.scratch_folder import ScratchFolder, TrialSetting
from sylph.net.http_client import HttpClient
from sylph.replay.divergence import Divergence
from sylph.replay.player import RecordedSession, ReplayDialects, load_recording, replay_session


class ReplayProofRow(msgspec.Struct, kw_only=True):
    """What came of one session. One that was erased from cannot be compared, and is left out."""

    session: str
    scenario: str = ""
    events: int = 0
    prompts: int = 0
    left_out: bool = False
    divergence: Divergence | None = None


class ReplayProofReport(msgspec.Struct, kw_only=True):
    rows: list[ReplayProofRow] = []
    seconds: float = 0.0

    @property
    def diverged(self) -> list[ReplayProofRow]:
        return [row for row in self.rows if row.divergence]

    @property
    def compared(self) -> list[ReplayProofRow]:
        return [row for row in self.rows if not row.left_out]


async def replay_sessions(
    log: EventLog, ids: Sequence[str], parts: RuntimeParts, dialects: ReplayDialects
) -> ReplayProofReport:
    """Replays sessions of a store."""
    return await _build_report([("", load_recording(log, id)) for id in ids], parts, dialects)


async def replay_scenarios(path: str) -> ReplayProofReport:
    """Plays every scenario, then plays it again from its log."""
    report = ReplayProofReport()
    for name in SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="sylph-prove-") as folder:
            recordings, parts = await _play_scenario(name, ScratchFolder(Path(folder)), path)
        found = await _build_report(
            [(name, each) for each in recordings], parts, lambda name, of=parts: _own_provider(of, name)
        )
        report.rows += found.rows
        report.seconds += found.seconds
    return report


async def _build_report(
    recordings: Sequence[tuple[str, RecordedSession]], parts: RuntimeParts, dialects: ReplayDialects
) -> ReplayProofReport:
    report, began = ReplayProofReport(), time.monotonic()
    for scenario, recording in recordings:
        if any(is_erased(record) for record in recording.records):
            report.rows.append(ReplayProofRow(session=recording.session, scenario=scenario, left_out=True))
            continue
        done = await replay_session(recording, parts, dialects)
        row = ReplayProofRow(session=done.session, scenario=scenario, events=done.matched, prompts=done.prompts)
        row.divergence = done.divergence
        report.rows.append(row)
    report.seconds = time.monotonic() - began
    return report


async def _play_scenario(name: str, place: ScratchFolder, path: str) -> tuple[list[RecordedSession], RuntimeParts]:
    async with _serve_fake_service() as sink:
        setting = TrialSetting(scenario=name, port=sink.port, path=path, kind="none")
        place.prepare(setting)
        client = HttpClient()
        try:
            async with build_runtime(
                SCENARIOS[setting.scenario], setting, place, CrashFuse("none", 0), client
            ) as engine:
                await ScenarioPlayer(engine, SCENARIOS[name], place).perform_steps()
                log = engine.log
                return [load_recording(log, session) for session in log.session_ids()], engine.parts
        finally:
            await client.close()


@asynccontextmanager
async def _serve_fake_service() -> AsyncGenerator[FakeService, None]:
    """The world outside, with somebody who answers there."""
    sink, over = FakeService(), asyncio.Event()

    def serve() -> None:
        while not over.is_set():
            sink.serve_request()

    task = asyncio.create_task(asyncio.to_thread(serve))
    try:
        yield sink
    finally:
        over.set()
        await task
        sink.close()


def _own_provider(parts: RuntimeParts, name: str) -> Sequence[Provider]:
    return (parts.gateway.providers[name],)
