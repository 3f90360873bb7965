"""A turn, told to somebody who watches, and to somebody who reads it later."""

from collections.abc import Iterable, Sequence

from sylph.core import facts, signals
from sylph.core.errors import ErrorReport
from sylph.core.events import Event, EventBody, UnreadableRecord
from sylph.core.facts.turn import PlanStep
from sylph.core.messages import Usage
from sylph.engine.folds.session_state import OpenCall, SessionState
from sylph.interfaces.text.render import StyledLine
from sylph.interfaces.text.transcript import event_rows, recent_exchanges, render_transcript
from sylph.interfaces.text.turn_presenter import (
    TASK_HINTS,
    AnswerChunk,
    AnswerText,
    BusyChanged,
    CallBegan,
    CallEnded,
    ChunksLost,
    DisplayEvent,
    NoticeShown,
    TurnConcluded,
    TurnPresenter,
    turn_end_lines,
)

CALLED = facts.ToolCalled(call="c1", name="shell", arguments='{"command":"make"}')
FINISHED = facts.ToolFinished(call="c1", ok=False, output="\n".join("abcdefgh"), exit=2, ms=1200)
TURN: Sequence[EventBody] = (
    facts.InputReceived(id="i1", text="build it"),
    facts.TurnStarted(input="i1"),
    facts.ModelResponded(model="m", text="I will.", finish="calls", calls=1, usage=Usage(input=5, output=2), cost=10),
    CALLED,
    facts.ToolStarted(call="c1", effect="write", recourse="unknowable"),
    FINISHED,
    facts.ModelResponded(model="m", text="It failed.", finish="stop", usage=Usage(input=9, output=3), cost=20),
    facts.TurnEnded(outcome="finished", rounds=2, ms=3000),
)


def events(*bodies: EventBody) -> list[Event]:
    return [Event(session="s", seq=seq, ts=0, turn="t1", body=body) for seq, body in enumerate(bodies, 1)]


def told(*bodies: EventBody) -> list[DisplayEvent]:
    narrator = TurnPresenter()
    return [act for event in events(*bodies) for act in narrator.present_event(event)]


def text(lines: Iterable[StyledLine]) -> list[str]:
    return ["".join(span.text for span in line) for line in lines]


def shown(*bodies: EventBody) -> list[str]:
    return [row for act in told(*bodies) if isinstance(act, NoticeShown) for row in text(act.lines)]


def test_a_turn_from_its_task_to_its_sums() -> None:
    acts = told(*TURN)
    assert acts[0] == AnswerText("I will.", final=False)
    assert acts[1] == CallBegan("c1", "shell  make")
    assert isinstance(acts[2], CallEnded)
    assert text([acts[2].mark]) == ["✗ exit 2  1.2 s"]
    assert acts[3] == AnswerText("It failed.", final=True)
    assert acts[4] == TurnConcluded("finished", None, "2 rounds · 14 tokens in, 5 out, $0.0000 · 3.0 s")


def test_signals_are_shown_as_they_come() -> None:
    assert told(signals.TextDelta(text="Hel")) == [AnswerChunk("Hel")]
    assert told(signals.ReasoningDelta(text="hm")) == [BusyChanged("thinking")]
    assert told(signals.ArgsDelta(index=0, name="write", text="{")) == [BusyChanged("writing write")]
    assert told(signals.ToolOutput(call="c1", text="one\ntwo\n")) == [BusyChanged("two")]
    assert told(signals.Progress(text="loading")) == [BusyChanged("loading")]
    assert told(signals.Lagged(missed=3)) == [ChunksLost()]


def test_a_retry_counts_down() -> None:
    failed = facts.ModelFailed(model="m", trouble=ErrorReport("overloaded", "too busy"), attempt=1, retry_ms=4000)
    assert told(failed)[1] == BusyChanged("next try", 4000)
    assert shown(failed) == ["! too busy; trying again in 4.0 s"]
    assert told(facts.ModelFailed(model="m", trouble=ErrorReport("auth", "no"), attempt=1)) == []


def test_what_changes_is_noted() -> None:
    assert shown(facts.InputReceived(id="i2", text="faster"), facts.InputDelivered(id="i2")) == ["↳ heard: faster"]
    assert shown(facts.SessionMode(mode="plan", was="ask")) == ["mode is now plan for this session"]
    assert shown(facts.SessionModel(model="a/b", was="c/d")) == ["model is now a/b for this session"]
    assert shown(facts.TurnResumed(attempt=1)) == ["going on with an interrupted turn (attempt 1)"]
    assert shown(facts.PlanUpdated(steps=(PlanStep("one"),))) == ["  ○ one"]


def test_the_plan_and_questions_show_themselves() -> None:
    called = facts.ToolCalled(call="c2", name="plan", arguments="{}")
    started = facts.ToolStarted(call="c2", effect="read", recourse="pure")
    assert told(called, started, facts.ToolFinished(call="c2", ok=True, output="")) == []


def test_a_dry_run_says_so_at_every_step() -> None:
    acts = told(
        facts.InputReceived(id="i1", text="do it", dry_run=True),
        facts.TurnStarted(input="i1"),
        CALLED,
        facts.ToolStarted(call="c1", effect="write", recourse="unknowable"),
        facts.ToolFinished(call="c1", ok=True, output="[dry run]\nwould run in /x:\nmake", dry=True),
        facts.TurnEnded(outcome="finished"),
    )
    assert acts[0] == CallBegan("c1", "would run  make")
    assert isinstance(acts[1], CallEnded)
    assert text([acts[1].mark, *acts[1].more]) == ["not done: dry run", "  would run in /x:", "  make"]
    assert isinstance(acts[2], NoticeShown)
    assert text(acts[2].lines) == ["dry run: nothing was changed"]


def test_an_answer_that_is_not_whole_says_so() -> None:
    cut = facts.ModelResponded(model="m", text="half", finish="length")
    assert shown(cut) == ["! the answer was cut off at the model's length limit (say: go on)"]
    assert shown(facts.ModelResponded(model="m", text=" ", finish="stop")) == ["! the model said nothing"]
    assert shown(facts.ModelResponded(model="m", text="", finish="calls", calls=1)) == []


def test_a_failed_turn_names_the_command_that_tries_again() -> None:
    narrator = TurnPresenter(TASK_HINTS)
    failed = facts.TurnEnded(outcome="failed", trouble=ErrorReport("cut", "It broke off."))
    (ended,) = narrator.present_event(events(failed)[0])
    assert isinstance(ended, TurnConcluded)
    assert text(turn_end_lines(ended)) == ["sylph: It broke off.", "  → sylph retry s"]
    (spent,) = narrator.present_event(events(facts.TurnEnded(outcome="budget", trouble=ErrorReport("x", "Spent.")))[0])
    assert isinstance(spent, TurnConcluded)
    assert spent.hint == 'sylph -s s "go on"'


def test_a_resumed_turn_shows_its_calls_by_name() -> None:
    narrator = TurnPresenter()
    narrator.start_from(SessionState(open_calls={"c1": OpenCall("shell", '{"command":"make"}')}))
    (done,) = narrator.present_event(events(FINISHED)[0])
    assert isinstance(done, CallEnded)
    assert done.title == "shell  make"


def test_stopping_is_no_error() -> None:
    stopped = TurnConcluded("cancelled", ErrorReport("cancelled", "SIGINT"), "")
    assert text(turn_end_lines(stopped)) == ["stopped"]
    assert text(turn_end_lines(TurnConcluded("failed", ErrorReport("x", "broken"), ""))) == ["sylph: broken"]


def test_a_transcript_cuts_outputs_unless_told_not_to() -> None:
    rows = text(render_transcript(events(*TURN)))
    assert "> build it" in rows
    assert "    … 2 lines more (--full)" in rows
    whole = text(render_transcript(events(*TURN), {"c1": "all\nof it"}))
    assert whole[whole.index("▸ shell  make  ✗ exit 2  1.2 s") + 1 :][:2] == ["    all", "    of it"]


def test_a_transcript_shows_half_an_answer() -> None:
    failed = facts.ModelFailed(model="m", trouble=ErrorReport("cut", "x"), attempt=1, partial="It is because")
    assert text(render_transcript(events(failed))) == ["It is because", "[it ended here, unfinished]"]


def test_a_transcript_tells_what_was_said_meanwhile_once() -> None:
    said = facts.InputReceived(id="i2", text="faster", delivery="steer")
    assert text(render_transcript(events(said, facts.InputDelivered(id="i2")))) == ["> faster"]


def test_the_last_words_are_recalled_and_cut() -> None:
    rows = text(recent_exchanges(events(*TURN, facts.InputReceived(id="i2", text="\n".join("abcdefghijklmnop")))))
    assert rows[:2] == ["> build it", "It failed."]
    assert rows[-1] == "… 4 lines more"


def test_a_transcript_shows_what_it_cannot_read() -> None:
    carried = UnreadableRecord(type="future.thing", raw=b"{}", why="a newer version wrote it")
    assert "[future.thing: a newer version wrote it]" in text(render_transcript(events(carried)))


def test_a_transcript_shows_questions_and_answers() -> None:
    asked = facts.Asked(id="q", kind="approval", question="May it?")
    answered = facts.Answered(id="q", answer="no", reason="not now", by="user")
    assert text(render_transcript(events(asked, answered))) == ["? May it?", "  no: not now (user)"]


def test_the_table_of_events() -> None:
    (row,) = event_rows(events(CALLED))
    assert row[0] == "1"
    assert row[3:5] == ("tool.called", "sylph")


def test_a_call_is_told_as_the_person_changed_it() -> None:
    decided = facts.ToolDecided(
        call="c1",
        decision="allow",
        reason="you changed it and said yes",
        by="user",
        effect="write",
        risk="safe",
        arguments='{"command":"make two"}',
    )
    done = told(CALLED, decided, FINISHED)[-1]
    assert isinstance(done, CallEnded)
    assert done.title == "shell  make two"
    assert "▸ shell  make two  ✗ exit 2  1.2 s" in text(render_transcript(events(CALLED, decided, FINISHED)))


def test_a_full_stop_does_not_stand_before_what_follows() -> None:
    failed = facts.ModelFailed(model="m", trouble=ErrorReport("network", "It went away."), attempt=1, retry_ms=1000)
    assert shown(failed) == ["! It went away; trying again in 1.0 s"]
