"""What budgets decided then, in a replay: all of it is taken from the log."""

from collections.abc import Iterator, Sequence

from sylph.core import facts
from sylph.core.errors import BudgetSpent
from sylph.core.events import Fact
from sylph.core.facts.budget import BudgetExceeded, BudgetStopped, BudgetWarned
from sylph.core.facts.budget import budget_spent_error as told
from sylph.core.messages import Usage
from sylph.engine.budget.accounts import BudgetOwner
from sylph.engine.budget.ledger import UNMETERED, AttemptBudget, BudgetRequest, LostAttempt
from sylph.engine.model.gateway import INTERRUPTED
from sylph.replay.playback import Playback

CALL_ENDS = (facts.ModelResponded, facts.ModelFailed, facts.TurnEnded, facts.TurnResumed)


class RecordedBudgetLedger:
    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    async def reserve(self, ask: BudgetRequest) -> AttemptBudget | BudgetStopped:
        for body in self._upcoming_bodies():
            match body:
                case BudgetStopped():
                    return body
                case facts.ModelRequested(answer=answer, reserved=reserved, limited=limited) if ask.attempt == 1:
                    return AttemptBudget(most=answer if limited else None, reserved=reserved)
                case body if isinstance(body, CALL_ENDS):
                    break
                case _:
                    pass
        return UNMETERED

    async def lost_attempts(self, who: BudgetOwner) -> Sequence[LostAttempt]:  # noqa: ARG002 - the recording knows
        found: list[LostAttempt] = []
        for body in self._upcoming_bodies():
            match body:
                case facts.ModelFailed(trouble=trouble, usage=Usage() as usage) if trouble.kind == INTERRUPTED:
                    found.append(LostAttempt(body.model, body.role, body.attempt, usage, body.cost, body.turn))
                case facts.ModelRequested() | BudgetStopped():
                    break
                case body if isinstance(body, CALL_ENDS):
                    break
                case _:
                    pass
        return found

    def assumed_usage(self, grant: AttemptBudget) -> tuple[Usage, int | None] | None:  # noqa: ARG002 - the same
        failed = next((body for body in self._upcoming_bodies() if isinstance(body, facts.ModelFailed)), None)
        return (failed.usage, failed.cost) if failed and failed.usage else None

    async def settle(self, grant: AttemptBudget) -> Sequence[Fact]:  # noqa: ARG002 - the same
        found: list[Fact] = []
        for body in self._upcoming_bodies():
            match body:
                case BudgetWarned() | BudgetExceeded():
                    found.append(body)
                case facts.ModelRequested() | BudgetStopped() | facts.StateChanged():
                    break
                case body if isinstance(body, CALL_ENDS):
                    break
                case _:
                    pass
        return found

    def abandon(self, grant: AttemptBudget) -> None:
        """Nothing was put aside."""

    def budget_spent_error(self, stopped: BudgetStopped, session: str) -> BudgetSpent:
        """In the words of then."""
        error = told(stopped, session)
        ended = next((body for body in self._upcoming_bodies() if isinstance(body, facts.TurnEnded)), None)
        if ended and ended.trouble and ended.trouble.kind == error.kind:
            error.trouble = ended.trouble
        return error

    async def close(self) -> None:
        """There is nothing to close."""

    def _upcoming_bodies(self) -> Iterator[object]:
        return (event.body for event in self._playback.upcoming)
