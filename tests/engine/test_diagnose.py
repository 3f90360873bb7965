"""Each finding appears exactly when it should, and a healthy session has none."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.plausible import Life, moves
from tests.engine.stage import TOOLS, Props, said, seen

from sylph.core import commands, facts
from sylph.core.command_run import BackgroundJob
from sylph.core.errors import ErrorReport
from sylph.core.events import Event, Fact, UnreadableRecord
from sylph.core.facts.tool_call import RecoveryMethod
from sylph.core.facts.turn import TurnOutcome
from sylph.core.permission.types import Decision
from sylph.diagnosis.checks import CHECKS, diagnose_session
from sylph.diagnosis.collect import examine_session, journal_states
from sylph.diagnosis.finding import DiagnosisFinding, LiveSessionInfo
from sylph.engine.folds.history import ConversationHistory
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState
from sylph.interfaces.cli.main import sylph
from sylph.replay.divergence import Divergence
from sylph.replay.player import ReplayResult
from sylph.testing import ScriptedProvider, begin_session, call_tool, play_turn, say, scripted_runtime

Changes = Mapping[str, Fact | tuple[Fact, ...] | None]


def change(was: str, event: str, to: str) -> facts.StateChanged:
    return facts.StateChanged(was=was, event=event, to=to)


def responded(*, calls: int = 0, finish: str = "stop") -> facts.ModelResponded:
    return facts.ModelResponded(model="m/m", text="…", finish=finish, calls=calls)


def requested(size: int, *, head: str = "h") -> facts.ModelRequested:
    return facts.ModelRequested(model="m/m", round=1, bytes=size, head=head)


def failed(kind: str, *, retry: int | None = None) -> facts.ModelFailed:
    return facts.ModelFailed(model="m/m", trouble=ErrorReport(kind, "It did not work."), attempt=1, retry_ms=retry)


def decided(decision: Decision = "allow") -> facts.ToolDecided:
    return facts.ToolDecided(call="t1_c1", decision=decision, reason="", by="mode", effect="write", risk="safe")


def started(recourse: RecoveryMethod = "by_content") -> facts.ToolStarted:
    return facts.ToolStarted(call="t1_c1", effect="write", recourse=recourse)


def finished(kind: str = "") -> facts.ToolFinished:
    trouble = ErrorReport(kind, "…") if kind else None
    return facts.ToolFinished(call="t1_c1", ok=not kind, output="…", trouble=trouble)


def ended(outcome: TurnOutcome, kind: str = "") -> facts.TurnEnded:
    return facts.TurnEnded(outcome=outcome, trouble=ErrorReport(kind, "This is why.") if kind else None)


def asked() -> facts.Asked:
    return facts.Asked(id="t1_q1", kind="question", question="Which?")


def squeezed(after: int) -> facts.CompactionMade:
    return facts.CompactionMade(
        upto=3, summary="…", words=(), ledger=(), why="", chunks=1, messages=3, tokens_before=100, tokens_after=after
    )


HEALTHY: dict[str, Fact] = {
    "created": facts.SessionCreated(workspace="/w", model="m/m", mode="ask"),
    "received": facts.InputReceived(id="i1", text="do it", key="k"),
    "started": facts.TurnStarted(input="i1"),
    "scouting": change("idle", "input", "scouting"),
    "processing": change("scouting", "prepared", "processing"),
    "first": requested(100),
    "calling": responded(calls=1, finish="calls"),
    "called": facts.ToolCalled(call="t1_c1", name="put", arguments="{}"),
    "decided": decided(),
    "running": started(),
    "finished": finished(),
    "second": requested(200),
    "answer": responded(),
    "finalizing": change("processing", "finish", "finalizing"),
    "ended": ended("finished"),
    "idle": change("finalizing", "close", "idle"),
}


def story(changes: Changes | None = None, *, upto: str = "") -> list[Event]:
    """The healthy session with other facts in some places (none: the fact is gone), cut off after `upto`."""
    told: list[Fact] = []
    for name, fact in HEALTHY.items():
        other = (changes or {}).get(name, fact)
        told += other if isinstance(other, tuple) else [] if other is None else [other]
        if name == upto:
            break
    return events(told)


def events(told: Iterable[Fact]) -> list[Event]:
    made: list[Event] = []
    turn, number = "", 0
    for seq, fact in enumerate(told, start=1):
        if isinstance(fact, facts.TurnStarted):
            number += 1
            turn = f"t{number}"
        # What comes after an end still names the turn, as far as turns are concerned.
        made.append(Event(session="s", seq=seq, ts=seq, body=fact, turn=turn))
    return made


def found(events: list[Event], live: LiveSessionInfo | None = None) -> list[DiagnosisFinding]:
    return [one for one in diagnose_session("s", events, live or LiveSessionInfo()) if one.state != "ok"]


def states(events: list[Event], live: LiveSessionInfo | None = None) -> list[tuple[str, str]]:
    return [(one.check, one.state) for one in found(events, live)]


def test_a_healthy_session_has_no_findings_and_every_check_says_so() -> None:
    assert found(story()) == []
    told = diagnose_session("s", story(), LiveSessionInfo())
    assert [one.check for one in told] == [check.name for check in CHECKS if check.ok_message]
    assert told[0].message == "16 facts, all readable, the chain holds"


def after(name: str, *more: Fact) -> Changes:
    return {name: (HEALTHY[name], *more)}


def before(name: str, *more: Fact) -> Changes:
    return {name: (*more, HEALTHY[name])}


INTERRUPTED = ("turns", "warn")
DAMAGED = UnreadableRecord(type="tool.finished", raw=b"{", why="damaged: cut off")
NEWER = UnreadableRecord(type="dream.dreamt", raw=b"{}", why="unknown type")
ERASED = facts.SessionErased(facts={"2": "x"}, why="a key")
UNSQUEEZED = facts.CompactionFailed(why="", trouble=ErrorReport("x", "No."))
ANSWERED = facts.Answered(id="t1_q1", answer="a")
RESUMED = (facts.TurnResumed(attempt=1), change("processing", "resume_turn", "scouting"), HEALTHY["processing"])
DREAMT = (change("processing", "dream", "dreaming"), change("dreaming", "resume_turn", "scouting"))
SENT = facts.InputReceived(id="i2", text="and?", key="k")
SENT_TOO = facts.InputReceived(id="i2", text="and?")
BRANCH = (facts.SessionForked(parent="p", at=8, root="p"), ended("interrupted", "forked"))
CUT: Changes = dict.fromkeys(("running", "finished", "second", "answer", "finalizing", "ended", "idle"))

# What is other than in the healthy session, what is found then, and some of the words.
WRONG: dict[str, tuple[Changes, str, str]] = {
    "damaged": (after("idle", DAMAGED), "log fail", "1 fact cannot be read: tool.finished"),
    "newer": (after("idle", NEWER), "log note", "1 fact of a newer Sylph"),
    "headless": ({"created": None}, "log fail", "The first fact"),
    "erased": (after("idle", ERASED), "log note", "a key"),
    "no end": (
        {"ended": None, "idle": change("finalizing", "mend", "idle")},
        "turns warn, states fail",
        "t1 was interrupted",
    ),
    "two ends": (after("ended", ended("finished")), "turns fail", "ended a second time"),
    "no start": ({"started": None, "received": None}, "turns fail", "ended and never began"),
    "resumed at rest": (after("idle", facts.TurnResumed(attempt=1)), "turns fail, turns note", "is not open"),
    "two at once": (
        after("processing", SENT_TOO, facts.TurnStarted(input="i2")),
        "turns fail",
        "t1 has no end, and t2 began",
    ),
    "failed": ({"ended": ended("failed", "network")}, "turns warn", "t1 ended as failed: This is why."),
    "budget": ({"ended": ended("budget", "budget_spent")}, "turns note", "ended as budget"),
    "gave up": ({"ended": ended("interrupted", "gave_up")}, "turns warn", "was given up: This is why."),
    "cancelled": ({"ended": ended("cancelled", "cancelled")}, "", ""),
    "resumed": (after("processing", *RESUMED), "turns note", "resumed 1 time (of 3)"),
    "no edge": ({"processing": change("scouting", "answer", "processing")}, "states fail", "by answer"),
    "a jump": ({"processing": None}, "states fail", "The session was scouting"),
    "a newer state": (
        after("processing", *DREAMT, HEALTHY["processing"]),
        "states note, states note",
        "of a newer Sylph",
    ),
    "left behind": ({"idle": None}, "states warn", "The session says finalizing"),
    "called twice": (
        {"calling": responded(calls=2), **after("called", HEALTHY["called"])},
        "calls fail",
        "second time",
    ),
    "two results": (after("finished", finished()), "calls fail", "t1_c1 has a second result"),
    "no result": ({"finished": None}, "calls fail", "no result though its turn has ended"),
    "not called": (
        {"calling": responded(), "called": None},
        "calls fail, calls fail, calls fail",
        "no fact before says",
    ),
    "not allowed": ({"decided": decided("deny")}, "calls fail", "without having been allowed"),
    "not decided": ({"decided": None}, "calls fail", "without having been allowed"),
    "announced": ({"calling": responded(calls=2)}, "calls fail", "fewer calls follow"),
    "unannounced": ({"calling": responded()}, "calls fail", "more calls follow"),
    "unknown": ({"finished": finished("unknown")}, "unknown warn", "Whether t1_c1 took effect"),
    "cut off": ({"finished": finished("cancelled")}, "unknown note", "1 call stopped in the middle"),
    "never begun": ({"running": None, "finished": finished("cancelled")}, "", ""),
    "unanswered": (before("finished", asked()), "questions fail", "t1_q1 was never answered"),
    "stopped asking": (
        {**before("finished", asked()), "ended": ended("cancelled")},
        "questions note",
        "ended as cancelled",
    ),
    "answered": (before("finished", asked(), ANSWERED), "", ""),
    "unasked": (before("finished", ANSWERED), "questions fail", "does not wait"),
    "twice received": (after("received", HEALTHY["received"]), "inputs fail", "received twice"),
    "one key": (
        after("received", SENT, facts.InputCancelled(id="i2")),
        "inputs fail",
        "a repeated message must stay one",
    ),
    "never received": ({"received": None}, "inputs fail", "names i1, which does not wait"),
    "delivered twice": (after("finished", facts.InputDelivered(id="i1")), "inputs fail", "it came a second time"),
    "waiting": (
        {**after("idle", SENT), "received": facts.InputReceived(id="i1", text="do it")},
        "inputs warn",
        "1 message received and never begun",
    ),
    "stopped in the middle of an answer": (
        {"answer": failed("cancelled"), "ended": ended("cancelled")},
        "",
        "",
    ),
    "no answer": ({"answer": None}, "model warn", "1 request without an answer"),
    "asked twice": (after("second", requested(200)), "model warn", "1 request without an answer"),
    "stopped thinking": ({"answer": None, "ended": ended("cancelled")}, "", ""),
    "tried again": (before("answer", failed("network", retry=5)), "model note", "1 request tried again: network"),
    "gave up asking": (
        {"answer": failed("auth"), "ended": ended("failed", "auth")},
        "turns warn, model warn",
        "m/m failed (auth): It did not work.",
    ),
    "cut answer": ({"answer": responded(finish="length")}, "model warn", "1 answer cut at the model's limit"),
    "filtered": ({"answer": responded(finish="filtered")}, "model warn", "provider's filter"),
    "shrunk": ({"second": requested(50)}, "prompt warn", "(100 bytes, then 50): nothing explains it"),
    "another head": ({"second": requested(50, head="i")}, "prompt note", "another head"),
    "compacted": ({"second": (squeezed(10), requested(50))}, "prompt note", "(100 bytes, then 50): a compaction"),
    "rewound": ({"second": (facts.HistoryRewound(to=3), requested(50))}, "prompt note", "a retry"),
    "other model": (
        {"second": (facts.SessionModel(model="n/n", was="m/m"), requested(50))},
        "prompt note",
        "another model",
    ),
    "useless": (before("second", squeezed(95)), "compaction warn", "95 of 100 tokens"),
    "not compacted": (before("second", UNSQUEEZED), "compaction warn", "1 compaction failed, nothing was dropped: No."),
    "compacted later": (before("second", UNSQUEEZED, squeezed(10)), "compaction note", "1 compaction failed"),
    "forked": ({**CUT, "decided": (*BRANCH, change("processing", "mend", "idle"))}, "", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_and_nothing_else(name: str) -> None:
    changes, expected, words = WRONG[name]
    told = story(changes)
    assert ", ".join(f"{check} {state}" for check, state in states(told)) == expected
    assert words in " ".join(one.message for one in found(told))
    for one in found(told):
        assert set(one.evidence) <= {event.seq for event in told}
        assert one.evidence


@pytest.mark.parametrize(
    ("recourse", "journal", "state", "words"),
    [
        ("pure", "", "note", "run again"),
        ("by_content", "", "note", "the files will tell"),
        ("by_key", "", "note", "under the same key"),
        ("by_probe", "", "note", "so it will be run"),
        ("by_probe", "running", "note", "still runs"),
        ("by_probe", "ended", "note", "the true result"),
        ("by_probe", "lost", "warn", "will be unknown"),
        ("unknowable", "", "warn", "will be unknown"),
    ],
)
def test_an_effect_left_open_says_what_a_resume_will_make_of_it(
    recourse: Any, journal: Any, state: str, words: str
) -> None:
    told = story({"running": started(recourse)}, upto="running")
    live = LiveSessionInfo(journals={"t1_c1": journal} if journal else {})
    assert states(told, live) == [INTERRUPTED, ("effects", state)]
    (effect,) = [one for one in found(told, live) if one.check == "effects"]
    assert words in effect.message
    assert "sylph resume s" in effect.next


def test_a_call_that_had_not_started_left_no_effect() -> None:
    assert states(story(upto="decided")) == [INTERRUPTED]


def test_what_names_another_turn_is_found() -> None:
    told = story()
    at = list(HEALTHY).index("finished")
    told[at] = msgspec.structs.replace(told[at], turn="t0")
    assert states(told) == [("calls", "fail")]
    again = story()
    again.append(msgspec.structs.replace(again[2], seq=len(again) + 1))
    assert ("turns", "fail") in states(again)


def test_what_a_living_process_does_is_not_wrong() -> None:
    live = LiveSessionInfo(pid=7)
    assert states(story(upto="running"), live) == [("turns", "note"), ("effects", "note"), ("lease", "note")]
    assert states(story(upto="first"), live) == [("turns", "note"), ("model", "note"), ("lease", "note")]
    waits = story({"running": (started(), asked())}, upto="running")
    assert ("questions", "note") in states(waits, live)
    assert ("questions", "warn") in states(waits)
    assert states(story({"idle": None}), live) == [("lease", "note")]
    assert ("inputs", "note") in states(story({"running": (started(), SENT_TOO)}, upto="running"), live)


def test_a_question_that_a_resumed_turn_asks_anew_waits_no_longer() -> None:
    again = facts.Asked(id="t1_q2", kind="question", question="Which?")
    told = story(
        {"finished": (asked(), facts.TurnResumed(attempt=1), again, facts.Answered(id="t1_q2", answer="a"), finished())}
    )
    assert states(told) == [("turns", "note")]
    assert "questions" not in dict(states(story({"running": (asked(), *RESUMED)}, upto="running")))


def test_old_failures_are_only_notes() -> None:
    more = (
        facts.InputReceived(id="i2", text="again"),
        facts.TurnStarted(input="i2"),
        change("idle", "input", "scouting"),
    )
    end = (change("scouting", "finish", "finalizing"), ended("finished"), change("finalizing", "close", "idle"))
    told = story({"answer": failed("auth"), "ended": ended("failed", "auth"), "idle": (HEALTHY["idle"], *more, *end)})
    assert states(told) == [("turns", "note"), ("model", "note")]


def test_a_clock_that_went_back_is_noted() -> None:
    told = story()
    told[5:] = [msgspec.structs.replace(event, ts=event.ts - 5000) for event in told[5:]]
    assert states(told) == [("log", "note")]


def test_what_verify_finds_is_passed_on() -> None:
    trouble = ErrorReport(
        "record_changed", "Fact 3 of s is not what was written.", {"seq": "3"}, ("Compare with a backup.",)
    )
    (one,) = found(story(), LiveSessionInfo(problems=(trouble,)))
    assert (one.check, one.state, one.evidence) == ("log", "fail", (3,))
    assert "Compare with a backup." in one.next


def _summary(upto: int) -> bytes:
    state = SessionState()
    for event in story()[:upto]:
        SESSION_FOLD.step(state, event)
    return msgspec.msgpack.encode(state)


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ((9, _summary(9)), []),
        ((9, _summary(8)), [("snapshots", "fail")]),
        ((99, _summary(9)), [("snapshots", "warn")]),
        ((9, b"\xff"), []),
    ],
)
def test_a_snapshot_says_what_the_log_says(kept: tuple[int, bytes], expected: list[tuple[str, str]]) -> None:
    assert states(story(), LiveSessionInfo(snapshots={"summary": kept})) == expected


def test_a_snapshot_that_is_far_behind_is_noted() -> None:
    long = story(after("idle", *[facts.SessionRenamed(title="x")] * 5_000))
    kept = {"summary": (9, _summary(9))}
    assert states(long, LiveSessionInfo(snapshots=kept)) == [("snapshots", "note")]
    assert states(long, LiveSessionInfo(snapshots=kept, pid=7)) == [("lease", "note")]


def test_a_history_that_is_not_the_logs_is_found() -> None:
    kept = msgspec.msgpack.encode(ConversationHistory(summary="what never was"))
    assert states(story(), LiveSessionInfo(snapshots={"history": (9, kept)})) == [("snapshots", "fail")]


def test_jobs_and_locks() -> None:
    jobs = [BackgroundJob(id=state, command="make", state=state) for state in ("running", "ended", "lost")]
    live = LiveSessionInfo(jobs=jobs, stale_lock=True)
    assert states(story(), live) == [("jobs", "note"), ("jobs", "warn"), ("lease", "note")]
    assert "cannot be told" in found(story(), LiveSessionInfo(pid=-1))[-1].message


def test_a_replay_is_told_where_there_was_one() -> None:
    same = ReplayResult(session="s", events=16, matched=16, prompts=2)
    differs = ReplayResult(
        session="s", events=16, matched=4, prompts=0, divergence=Divergence(seq=5, what="It is not.")
    )
    (fine,) = [one for one in diagnose_session("s", story(), LiveSessionInfo(replayed=same)) if one.check == "replay"]
    assert fine == DiagnosisFinding("replay", "ok", "16 facts and 2 prompts came out byte for byte")
    assert states(story(), LiveSessionInfo(replayed=differs)) == [("replay", "warn")]
    assert states(story(), LiveSessionInfo(replayed=ErrorReport("erased", "Something was erased."))) == [
        ("replay", "note")
    ]


def _commands(text: str) -> list[list[str]]:
    return [part.split()[1:] for part in re.findall(r"sylph [a-z]+ .*|sylph [a-z]+$", text)]


def test_every_next_action_is_a_command_that_there_is() -> None:
    live = LiveSessionInfo(
        jobs=[BackgroundJob(id="t1_c1", command="make", state="lost")],
        stale_lock=True,
        snapshots={"summary": (99, b"")},
    )
    everything = [one for changes, _, _ in WRONG.values() for one in found(story(changes), live)]
    everything += found(story(upto="running")) + found(story(upto="first"), LiveSessionInfo(pid=7)) + found([])
    context = click.Context(sylph)
    for one in everything:
        assert any(step.startswith("sylph ") for step in one.next), one
        for words in (words for step in one.next for words in _commands(step)):
            command = sylph.get_command(context, words[0])
            assert command, words
            if isinstance(command, click.Group) and len(words) > 1:
                command = command.commands[words[1]]
            flags = {flag for param in command.params for flag in param.opts}
            assert {word for word in words if word.startswith("--")} <= flags, words


@given(moves, st.booleans())
def test_whatever_could_have_happened_can_be_diagnosed(walk: list[tuple[str, int]], alive: bool) -> None:
    told = Life().live(walk).events
    for one in diagnose_session("s", told, LiveSessionInfo(pid=int(alive))):
        assert one.state == "ok" or one.next
        assert one.state != "fail" or one.check in ("calls", "states", "questions"), one


async def test_a_real_session_is_examined_with_all_there_is(home: Path) -> None:
    provider = ScriptedProvider([call_tool("put", path="a", text="b"), say("Done.")])
    async with scripted_runtime(home, provider, tools=TOOLS) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "do it")
        told = await examine_session(engine, session, lambda _: (provider,))
    assert [(one.check, one.state) for one in told if one.state != "ok"] == []
    assert [one.check for one in told] == [check.name for check in CHECKS]


async def test_a_session_at_work_and_one_that_was_left(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        await seen(engine, session, facts.ToolStarted)
        told = await examine_session(engine, session, lambda _: ())
        assert {(one.check, one.state) for one in told if one.state != "ok"} == {
            ("turns", "note"),
            ("effects", "note"),
            ("lease", "note"),
        }
    async with scripted_runtime(home, [say("Done.")], tools=props.tools) as engine:
        told = await examine_session(engine, session, lambda _: (ScriptedProvider([]),))
        assert {(one.check, one.state) for one in told if one.state != "ok"} == {("turns", "warn"), ("effects", "warn")}
        await engine.send(session, commands.Continue())
        await engine.wait_until_idle(session)
        await said(engine, session, "and now?")


async def test_journals_tell_what_became_of_commands(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
    runs = home / "data" / "runs"
    runs.mkdir(exist_ok=True)
    intent = b'{"intent":{"runner":1,"runner_start":"never","boot":"another"}}\n'
    ended = b'{"ended":{"bytes":0,"head":0}}\n'
    for name, journal in (("t1_c1", intent), ("t1_c2", intent + ended), ("t1_c3", b"")):
        (runs / f"{session}.{name}.run").write_bytes(journal)
    async with scripted_runtime(home, [], tools=props.tools) as engine:
        assert journal_states(engine.executor.runner, session) == {"t1_c1": "lost", "t1_c2": "ended"}
    for path in runs.iterdir():
        path.unlink()


async def test_a_session_that_cannot_be_run_again_says_why(home: Path) -> None:
    async with scripted_runtime(home, [say("Hello.")]) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "my password is hunter2")
        await engine.erase_secret(session, "hunter2")
        told = await examine_session(engine, session, lambda _: ())
    assert {(one.check, one.state) for one in told if one.state != "ok"} == {("log", "note"), ("replay", "note")}


async def test_a_tampered_session_is_broken_and_not_run_again(tmp_path: Path) -> None:
    async with scripted_runtime(tmp_path, [say("Hello.")]) as engine:
        session = await begin_session(engine, tmp_path)
        await play_turn(engine, session, "hello")
        await engine.log.execute_change(lambda db: db.execute("update event set actor = 'x' where seq = 3"))
        told = await examine_session(engine, session, lambda _: ())
    assert [one.check for one in told if one.state == "fail"] == ["log"]
    assert "replay" not in [one.check for one in told]
