"""Exit codes: one table, which the handbook's page and every command go by."""

from typing import Final, NamedTuple, get_args

from sylph.core.errors import Conflict, FailureKind, NoModel, StoreError, SylphError, Trouble
from sylph.core.facts import Outcome, TurnEnded


class Code(NamedTuple):
    number: int
    meaning: str


OK: Final = Code(0, "Done.")
FAILED: Final = Code(1, "The turn or the command failed.")
USAGE: Final = Code(2, "The command line or the configuration is wrong.")
REFUSED: Final = Code(3, "The turn ended, but something it wanted to do was refused: nobody was there to ask.")
NO_MODEL: Final = Code(4, "There is no model, or its service cannot be used.")
BUSY: Final = Code(5, "Another process works on this session, or serves this home.")
BUDGET: Final = Code(6, "The turn used up its rounds, time or money.")
STORE: Final = Code(7, "The store is damaged, full or not writable.")
INTERRUPTED: Final = Code(130, "Interrupted with Ctrl-C.")
CLOSED: Final = Code(141, "Whoever read the output stopped reading.")
TERMINATED: Final = Code(143, "Ended by SIGTERM.")

CODES: Final = (
    OK,
    FAILED,
    USAGE,
    REFUSED,
    NO_MODEL,
    BUSY,
    BUDGET,
    STORE,
    INTERRUPTED,
    CLOSED,
    TERMINATED,
)

BY_KIND: Final[dict[str, Code]] = {
    "usage": USAGE,
    "config": USAGE,
    "price_unknown": USAGE,
    "refused": REFUSED,
    "no_model": NO_MODEL,
    "session_busy": BUSY,
    "server_running": BUSY,
    "conflict": BUSY,
    "budget_spent": BUDGET,
    "store_failed": STORE,
}
# What the service of a model can do wrong.
SERVICE: Final = frozenset(get_args(FailureKind))

BY_OUTCOME: Final[dict[Outcome, Code]] = {
    "finished": OK,
    "failed": FAILED,
    "cancelled": INTERRUPTED,
    "budget": BUDGET,
    "interrupted": FAILED,
}


def of_error(error: SylphError) -> int:
    """What went wrong with the store has many kinds and one code."""
    if isinstance(error, StoreError) and not isinstance(error, Conflict):
        return STORE.number
    if isinstance(error, NoModel):
        return NO_MODEL.number
    return of_trouble(error.trouble)


def of_trouble(trouble: Trouble) -> int:
    return BY_KIND.get(trouble.kind, FAILED).number


def of_turn(ended: TurnEnded) -> int:
    if ended.outcome == "failed" and ended.trouble:
        return NO_MODEL.number if ended.trouble.kind in SERVICE else of_trouble(ended.trouble)
    return BY_OUTCOME[ended.outcome].number
