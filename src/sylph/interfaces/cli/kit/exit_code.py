"""Exit codes: one table, which the handbook's page and every command go by."""

from typing import Final, NamedTuple, get_args

from sylph.core.errors import ErrorReport, FailureKind, LogConflict, NoModel, StoreError, SylphError
from sylph.core.facts.turn import TurnEnded, TurnOutcome


class ExitCode(NamedTuple):
    number: int
    meaning: str


OK: Final = ExitCode(0, "Done.")
FAILED: Final = ExitCode(1, "The turn or the command failed.")
USAGE: Final = ExitCode(2, "The command line or the configuration is wrong.")
REFUSED: Final = ExitCode(3, "The turn ended, but something it wanted to do was refused: nobody was there to ask.")
NO_MODEL: Final = ExitCode(4, "There is no model, or its service cannot be used.")
BUSY: Final = ExitCode(5, "Another process works on this session, or serves this home.")
BUDGET: Final = ExitCode(6, "The turn used up its rounds, time or money.")
STORE: Final = ExitCode(7, "The store is damaged, full or not writable.")
INTERRUPTED: Final = ExitCode(130, "Interrupted with Ctrl-C.")
CLOSED: Final = ExitCode(141, "Whoever read the output stopped reading.")
TERMINATED: Final = ExitCode(143, "Ended by SIGTERM.")

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

BY_KIND: Final[dict[str, ExitCode]] = {
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
SERVICE_FAILURES: Final = frozenset(get_args(FailureKind))

BY_OUTCOME: Final[dict[TurnOutcome, ExitCode]] = {
    "finished": OK,
    "failed": FAILED,
    "cancelled": INTERRUPTED,
    "budget": BUDGET,
    "interrupted": FAILED,
}


def for_error(error: SylphError) -> int:
    """What went wrong with the store has many kinds and one code."""
    if isinstance(error, StoreError) and not isinstance(error, LogConflict):
        return STORE.number
    if isinstance(error, NoModel):
        return NO_MODEL.number
    return for_error_report(error.trouble)


def for_error_report(trouble: ErrorReport) -> int:
    return BY_KIND.get(trouble.kind, FAILED).number


def for_turn(ended: TurnEnded) -> int:
    if ended.outcome == "failed" and ended.trouble:
        return NO_MODEL.number if ended.trouble.kind in SERVICE_FAILURES else for_error_report(ended.trouble)
    return BY_OUTCOME[ended.outcome].number
