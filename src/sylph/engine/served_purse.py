"""What budgets decided then, in a replay: all of it is taken from the log."""

from collections.abc import Iterator, Sequence

from sylph.core import facts
from sylph.core.budget import BudgetExceeded, BudgetStopped, BudgetWarned
from sylph.core.budget import spent as told
from sylph.core.errors import BudgetSpent
from sylph.core.events import Fact
from sylph.core.messages import Usage
from sylph.engine.budget.accounts import Payer
from sylph.engine.budget.purse import NOTHING, Ask, Grant, Lost
from sylph.engine.gateway import INTERRUPTED
from sylph.engine.tape import Tape

ENDS = (facts.ModelResponded, facts.ModelFailed, facts.TurnEnded, facts.TurnResumed)


class ServedPurse:
    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def reserve(self, ask: Ask) -> Grant | BudgetStopped:
        for body in self._ahead():
            match body:
                case BudgetStopped():
                    return body
                case facts.ModelRequested(answer=answer, reserved=reserved, limited=limited) if ask.attempt == 1:
                    return Grant(most=answer if limited else None, reserved=reserved)
                case body if isinstance(body, ENDS):
                    break
                case _:
                    pass
        return NOTHING

    async def lost(self, who: Payer) -> Sequence[Lost]:  # noqa: ARG002 - the recording knows
        found: list[Lost] = []
        for body in self._ahead():
            match body:
                case facts.ModelFailed(trouble=trouble, usage=Usage() as usage) if trouble.kind == INTERRUPTED:
                    found.append(Lost(body.model, body.role, body.attempt, usage, body.cost, body.turn))
                case facts.ModelRequested() | BudgetStopped():
                    break
                case body if isinstance(body, ENDS):
                    break
                case _:
                    pass
        return found

    def counted(self, grant: Grant) -> tuple[Usage, int | None] | None:  # noqa: ARG002 - the same
        failed = next((body for body in self._ahead() if isinstance(body, facts.ModelFailed)), None)
        return (failed.usage, failed.cost) if failed and failed.usage else None

    async def settle(self, grant: Grant) -> Sequence[Fact]:  # noqa: ARG002 - the same
        found: list[Fact] = []
        for body in self._ahead():
            match body:
                case BudgetWarned() | BudgetExceeded():
                    found.append(body)
                case facts.ModelRequested() | BudgetStopped() | facts.StateChanged():
                    break
                case body if isinstance(body, ENDS):
                    break
                case _:
                    pass
        return found

    def leave(self, grant: Grant) -> None:
        """Nothing was put aside."""

    def spent(self, stopped: BudgetStopped, session: str) -> BudgetSpent:
        """In the words of then."""
        error = told(stopped, session)
        ended = next((body for body in self._ahead() if isinstance(body, facts.TurnEnded)), None)
        if ended and ended.trouble and ended.trouble.kind == error.kind:
            error.trouble = ended.trouble
        return error

    async def close(self) -> None:
        """There is nothing to close."""

    def _ahead(self) -> Iterator[object]:
        return (event.body for event in self._tape.ahead)
