"""Gathers what a diagnosis needs: the whole log of a session, and what is true of it at this moment."""

from msgspec.structs import replace

from sylph.core.errors import ErrorReport, SylphError
from sylph.core.events import Event, UnreadableRecord
from sylph.diagnosis.checks import diagnose_session
from sylph.diagnosis.finding import DiagnosisFinding, JournalState, LiveSessionInfo
from sylph.engine.commands.jobs import SessionJobs
from sylph.engine.commands.journal_reader import read_journal
from sylph.engine.commands.runner_client import ATTEMPT_SEPARATOR, RunnerClient
from sylph.engine.folds.history import HISTORY_FOLD
from sylph.engine.folds.session_state import SESSION_FOLD
from sylph.engine.log import lease, verify
from sylph.engine.log.store import EventLog
from sylph.engine.runtime.runtime import Runtime
from sylph.replay import player as again
from sylph.replay.player import ReplayDialects, ReplayResult

PAGE = 2000


async def examine_session(runtime: Runtime, session: str, dialects: ReplayDialects) -> list[DiagnosisFinding]:
    """Looks at everything and changes nothing."""
    locks = runtime.log.path.parent / "locks"
    # Asked before and after: a turn that began or ended while we read was not interrupted.
    pid = lease.holder_pid(locks, session)
    events = _read_events(runtime.log, session)
    pid = pid or lease.holder_pid(locks, session)
    live = _collect_live_info(runtime.log, session, runtime.executor.runner)
    live = replace(live, pid=pid, stale_lock=not pid and (locks / f"{session}.lock").exists())
    if not pid and not live.problems and not any(isinstance(event.body, UnreadableRecord) for event in events):
        live = replace(live, replayed=await _try_replay(runtime, session, dialects))
    return diagnose_session(session, events, live)


def _collect_live_info(log: EventLog, session: str, runner: RunnerClient) -> LiveSessionInfo:
    kept = {fold.name: log.load_snapshot(session, fold.name, fold.version) for fold in (SESSION_FOLD, HISTORY_FOLD)}
    return LiveSessionInfo(
        problems=verify.verify_session(log, session).problems,
        journals=journal_states(runner, session),
        jobs=SessionJobs(runner, session, ends_lost=False).all(),
        snapshots={name: found for name, found in kept.items() if found},
    )


def _read_events(log: EventLog, session: str) -> list[Event]:
    events: list[Event] = []
    while page := log.read_events(session, after=events[-1].seq if events else 0, limit=PAGE):
        events += page
    return events


def journal_states(runner: RunnerClient, session: str) -> dict[str, JournalState]:
    """What the newest journal of each call says."""
    paths = runner.folder.glob(f"{session}.*.run") if runner.folder.is_dir() else ()
    calls = {path.stem.rpartition(".")[2].partition(ATTEMPT_SEPARATOR)[0] for path in paths}
    stories = {
        call: read_journal(runner.folder / f"{runner.newest_journal(f'{session}.{call}')}.run") for call in calls
    }
    found: dict[str, JournalState] = {}
    for call, story in stories.items():
        if story.intent:
            found[call] = "ended" if story.ended else "running" if story.runner_alive else "lost"
    return found


async def _try_replay(runtime: Runtime, session: str, dialects: ReplayDialects) -> ReplayResult | ErrorReport:
    try:
        return await again.replay_session(again.load_recording(runtime.log, session), runtime.parts, dialects)
    except SylphError as error:
        return error.trouble
