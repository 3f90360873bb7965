"""What a session may be doing, and what may happen next: a table, total over states and events."""

from typing import Literal, get_args

State = Literal[
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

Trigger = Literal[
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
UNPAUSABLE: dict[State, str] = {
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

STATES: tuple[State, ...] = get_args(State)
TRIGGERS: tuple[Trigger, ...] = get_args(Trigger)

# Whatever is not named here is refused. Every row lists what leads out of a state.
EDGES: dict[State, dict[Trigger, State]] = {
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
for row in EDGES.values():
    row["resume_turn"] = "scouting"
    row["mend"] = "idle"

UNKNOWN: dict[Trigger, State] = {"resume_turn": "scouting", "mend": "idle"}

RUNNING: frozenset[State] = frozenset(STATES) - {"idle"}


def step(state: State, trigger: Trigger) -> State | None:
    """The state that follows, or None: this cannot happen now."""
    # A newer version may have left a state that this one does not know.
    return EDGES.get(state, UNKNOWN).get(trigger)
