"""The state machine is a table, and all of it is decided."""

from typing import cast

import pytest

from sylph.engine.folds.state_machine import RUNNING_STATES, STATES, TRANSITIONS, TRIGGERS, ActivityState, next_state

# Every pair of a state and what happens; a dot is a refusal. Change it only together with the table in the code.
TABLE = """
                  input    resume_turn prepared   compact    compacted  ask           answer     pause           hold   unpause    dispatch         gather     cancel     finish     close mend
idle              scouting scouting    .          compacting .          .             .          .               .      .          .                .          .          .          .     idle
scouting          .        scouting    processing .          .          .             .          .               .      .          .                .          cancelling finalizing .     idle
processing        .        scouting    .          compacting .          awaiting_user .          pause_requested .      .          awaiting_workers .          cancelling finalizing .     idle
compacting        .        scouting    .          .          processing .             .          .               .      .          .                .          cancelling finalizing idle  idle
pause_requested   .        scouting    .          .          .          .             .          .               paused processing .                .          cancelling finalizing .     idle
paused            .        scouting    .          .          .          .             .          .               .      processing .                .          cancelling finalizing .     idle
cancelling        .        scouting    .          .          .          .             .          .               .      .          .                .          .          .          idle  idle
finalizing        .        scouting    .          .          .          .             .          .               .      .          .                .          .          .          idle  idle
awaiting_user     .        scouting    .          .          .          .             processing .               .      .          .                .          cancelling finalizing .     idle
awaiting_workers  .        scouting    .          .          .          .             .          .               .      .          .                processing cancelling finalizing .     idle
"""  # noqa: E501 - a table


def _table() -> dict[str, dict[str, str | None]]:
    head, *rows = [line.split() for line in TABLE.strip("\n").splitlines()]
    return {
        row[0]: {trigger: None if to == "." else to for trigger, to in zip(head, row[1:], strict=True)} for row in rows
    }


def test_every_pair_of_state_and_trigger_is_decided() -> None:
    assert {state: {trigger: next_state(state, trigger) for trigger in TRIGGERS} for state in STATES} == _table()
    assert TRANSITIONS.keys() == set(STATES)


def test_every_state_can_be_reached() -> None:
    reached = {"idle"}
    while found := {to for state in STATES if state in reached for to in TRANSITIONS[state].values()} - reached:
        reached |= found
    assert reached == set(STATES)


@pytest.mark.parametrize("state", sorted(RUNNING_STATES))
def test_whatever_runs_can_be_ended(state: ActivityState) -> None:
    stopped, finished = next_state(state, "cancel"), next_state(state, "finish")
    assert (stopped and finished) or next_state(state, "close") == "idle"
    assert all(next_state(end, "close") == "idle" for end in (stopped, finished) if end)


def test_a_state_of_a_newer_version_can_only_be_left() -> None:
    dreaming = cast("ActivityState", "dreaming")
    assert {trigger: to for trigger in TRIGGERS if (to := next_state(dreaming, trigger))} == {
        "resume_turn": "scouting",
        "mend": "idle",
    }
