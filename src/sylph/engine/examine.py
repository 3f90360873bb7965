"""Gathers what a diagnosis needs: the whole log of a session, and what is true of it at this moment."""

from msgspec.structs import replace

from sylph.core.errors import SylphError, Trouble
from sylph.core.events import Carried, Event
from sylph.engine import lease, verify
from sylph.engine import replay as again
from sylph.engine.diagnose import diagnose
from sylph.engine.diagnosis.finding import Finding, Journal, Live
from sylph.engine.history import HISTORY
from sylph.engine.jobs import SessionJobs
from sylph.engine.log import Log
from sylph.engine.replay import Dialects, Replayed
from sylph.engine.runs import AGAIN, Runner
from sylph.engine.runtime import Runtime
from sylph.engine.story import read_story
from sylph.engine.summary import SUMMARY

PAGE = 2000


async def examine(runtime: Runtime, session: str, dialects: Dialects) -> list[Finding]:
    """Looks at everything and changes nothing."""
    locks = runtime.log.path.parent / "locks"
    # Asked before and after: a turn that began or ended while we read was not interrupted.
    pid = lease.holder(locks, session)
    events = _events(runtime.log, session)
    pid = pid or lease.holder(locks, session)
    live = _beside(runtime.log, session, runtime.executor.runner)
    live = replace(live, pid=pid, left=not pid and (locks / f"{session}.lock").exists())
    if not pid and not live.problems and not any(isinstance(event.body, Carried) for event in events):
        live = replace(live, replayed=await _replayed(runtime, session, dialects))
    return diagnose(session, events, live)


def _beside(log: Log, session: str, runner: Runner) -> Live:
    kept = {fold.name: log.snapshot(session, fold.name, fold.version) for fold in (SUMMARY, HISTORY)}
    return Live(
        problems=verify.verify(log, session).problems,
        journals=journals(runner, session),
        jobs=SessionJobs(runner, session, ends_lost=False).all(),
        snapshots={name: found for name, found in kept.items() if found},
    )


def _events(log: Log, session: str) -> list[Event]:
    events: list[Event] = []
    while page := log.read(session, after=events[-1].seq if events else 0, limit=PAGE):
        events += page
    return events


def journals(runner: Runner, session: str) -> dict[str, Journal]:
    """What the newest journal of each call says."""
    paths = runner.folder.glob(f"{session}.*.run") if runner.folder.is_dir() else ()
    calls = {path.stem.rpartition(".")[2].partition(AGAIN)[0] for path in paths}
    stories = {call: read_story(runner.folder / f"{runner.newest(f'{session}.{call}')}.run") for call in calls}
    found: dict[str, Journal] = {}
    for call, story in stories.items():
        if story.intent:
            found[call] = "ended" if story.ended else "running" if story.watched else "lost"
    return found


async def _replayed(runtime: Runtime, session: str, dialects: Dialects) -> Replayed | Trouble:
    try:
        return await again.replay(again.from_log(runtime.log, session), runtime.parts, dialects)
    except SylphError as error:
        return error.trouble
