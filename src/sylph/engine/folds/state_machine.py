"""What a session may be doing, and what may happen next: a table, total over states and events."""

from typing import Literal, get_args

ActivityState = Literal[
    "idle",
    "scouting",
    "processing",
    "compacting",
    "pause_requested",
    "paused",
    "cancelling",
    "finalizing",
    "awaiting_user",
    "awaiting_workers",
]

StateTrigger = Literal[
    "input",  # a message begins a turn
    "resume_turn",  # a turn that a crash left open goes on
    "prepared",  # the context is ready
    "compact",  # the window fills up, or somebody asked for it
    "compacted",
    "ask",  # a person is needed
    "answer",
    "pause",
    "hold",  # the turn reached a safe point and holds there
    "unpause",
    "dispatch",  # workers are at it; nothing to do until they are done
    "gather",
    "cancel",
    "finish",  # the answer is there, or the turn failed
    "close",  # the last fact of the turn is about to be written
    "mend",  # a crash or a fork left the state of a turn that is not there
]

# Why a pause is refused, where it is.
PAUSE_REFUSALS: dict[ActivityState, str] = {
    "idle": "No turn runs, so there is nothing to pause.",
    "scouting": "The turn has only just begun. Try again in a moment.",
    "processing": "The turn cannot be paused now.",
    "compacting": "The session is being summarised. Try again when that is done.",
    "pause_requested": "The turn has been told to pause already. It holds after its present step.",
    "paused": "The turn is paused already.",
    "cancelling": "The turn is being cancelled.",
    "finalizing": "The turn is ending.",
    "awaiting_user": "The turn waits for an answer, and does nothing until it has one.",
    "awaiting_workers": "The turn waits for its workers.",
}

STATES: tuple[ActivityState, ...] = get_args(ActivityState)
TRIGGERS: tuple[StateTrigger, ...] = get_args(StateTrigger)

# Whatever is not named here is refused. Every row lists what leads out of a state.
TRANSITIONS: dict[ActivityState, dict[StateTrigger, ActivityState]] = {
    "idle": {"input": "scouting", "compact": "compacting"},
    "scouting": {"prepared": "processing", "cancel": "cancelling", "finish": "finalizing"},
    "processing": {
        "compact": "compacting",
        "ask": "awaiting_user",
        "pause": "pause_requested",
        "dispatch": "awaiting_workers",
        "cancel": "cancelling",
        "finish": "finalizing",
    },
    "compacting": {"compacted": "processing", "cancel": "cancelling", "finish": "finalizing", "close": "idle"},
    "pause_requested": {
        "hold": "paused",
        "unpause": "processing",
        "cancel": "cancelling",
        "finish": "finalizing",
    },
    "paused": {"unpause": "processing", "cancel": "cancelling", "finish": "finalizing"},
    "cancelling": {"close": "idle"},
    "finalizing": {"close": "idle"},
    "awaiting_user": {"answer": "processing", "cancel": "cancelling", "finish": "finalizing"},
    "awaiting_workers": {"gather": "processing", "cancel": "cancelling", "finish": "finalizing"},
}

# A process may die in any state; whoever finds the turn open takes it up again.
for row in TRANSITIONS.values():
    row["resume_turn"] = "scouting"
    row["mend"] = "idle"

UNKNOWN_STATE_TRANSITIONS: dict[StateTrigger, ActivityState] = {"resume_turn": "scouting", "mend": "idle"}

RUNNING_STATES: frozenset[ActivityState] = frozenset(STATES) - {"idle"}


def next_state(state: ActivityState, trigger: StateTrigger) -> ActivityState | None:
    """The state that follows, or None: this cannot happen now."""
    # A newer version may have left a state that this one does not know.
    return TRANSITIONS.get(state, UNKNOWN_STATE_TRANSITIONS).get(trigger)
