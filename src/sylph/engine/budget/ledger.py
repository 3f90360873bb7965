"""The purse: what a model call may take is put aside before the call, and settled by the log after it."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import BudgetSpent
from sylph.core.events import Fact
from sylph.core.facts.budget import Budget, BudgetAmount, BudgetStopped, BudgetWarned, budget_spent_error
from sylph.core.messages import Message, Usage
from sylph.core.provider import ModelInfo
from sylph.engine.budget import worst_case
from sylph.engine.budget.accounts import BudgetAccount, BudgetOwner, capped_accounts, shared_accounts
from sylph.engine.budget.headroom import (
    capped_measures,
    compute_headroom,
    overrun_facts,
    require_price,
    resize_reservation,
)
from sylph.engine.budget.ledger_store import (
    FILE,
    AccountBalance,
    LedgerStore,
    ProcessTable,
    Reservation,
    unusable_file_error,
)
from sylph.engine.budget.worst_case import LEAST_ANSWER, UNBOUND_ANSWER, CountedPrompt, PromptSize, TokenPrice
from sylph.engine.log import schema

WARN_AT = 0.8
# How often a process looks at what others have done without telling the purse: those that have no budget, or died.
LOOK_SECONDS = 30.0
# How long a call waits for others to give back what they have put aside and did not need.
WAIT_SECONDS, FIRST_PAUSE, LONGEST_PAUSE = 120.0, 0.01, 0.5

T = TypeVar("T")


class BudgetRequest(Struct, frozen=True, kw_only=True):
    """A call that is about to be made."""

    owner: BudgetOwner
    model: str
    role: str
    body: int
    messages: Sequence[Message]
    info: ModelInfo
    most: int | None = None
    attempt: int = 1
    bound: bool = True
    """Whether the service can be told how long its answer may be."""


class AttemptBudget(Struct, frozen=True, kw_only=True):
    """What was put aside for an attempt, and how long its answer may be for that; nothing, where nothing is counted."""

    reservation: Reservation | None = None
    most: int | None = None
    reserved: int | None = None
    prompt: PromptSize = PromptSize(0)
    bound: bool = True


UNMETERED = AttemptBudget()


class LostAttempt(NamedTuple):
    """An attempt that a dead process left behind: nobody knows whether it was answered."""

    model: str
    role: str
    attempt: int
    usage: Usage
    cost: int | None
    turn: str = ""
    """The turn in which it was asked, where that is not the one that finds it."""


class BudgetLedger(Protocol):
    async def reserve(self, ask: BudgetRequest) -> AttemptBudget | BudgetStopped:
        """Puts the worst case aside. A BudgetStopped is to be written, and then the call is not made."""
        ...

    async def lost_attempts(self, who: BudgetOwner) -> Sequence[LostAttempt]:
        """What an earlier process asked for in this session, and nobody heard the end of. To be written down."""
        ...

    def assumed_usage(self, grant: AttemptBudget) -> tuple[Usage, int | None] | None:
        """What an attempt whose end is not known is counted at; None where nothing is counted."""
        ...

    async def settle(self, grant: AttemptBudget) -> Sequence[Fact]:
        """After the log knows how it ended. What is returned is to be told."""
        ...

    def abandon(self, grant: AttemptBudget) -> None:
        """Nobody will settle it: the log tells the next call of the session how it ended, or does not."""
        ...

    def budget_spent_error(self, stopped: BudgetStopped, session: str) -> BudgetSpent: ...
    async def close(self) -> None: ...


class NoBudgetLedger:
    """No budget: nothing is counted, and no file is touched."""

    async def reserve(self, ask: BudgetRequest) -> AttemptBudget | BudgetStopped:  # noqa: ARG002 - whatever it is
        return UNMETERED

    async def lost_attempts(self, who: BudgetOwner) -> Sequence[LostAttempt]:  # noqa: ARG002 - the same
        return ()

    def assumed_usage(self, grant: AttemptBudget) -> tuple[Usage, int | None] | None:  # noqa: ARG002 - the same
        return None

    async def settle(self, grant: AttemptBudget) -> Sequence[Fact]:  # noqa: ARG002 - the same
        return ()

    def abandon(self, grant: AttemptBudget) -> None:
        """There was nothing put aside."""

    def budget_spent_error(self, stopped: BudgetStopped, session: str) -> BudgetSpent:
        return budget_spent_error(stopped, session)

    async def close(self) -> None:
        """There is nothing to close."""


class SharedBudgetLedger:
    """A purse that all processes on one store share. One thread of its own does the writing."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        budget: Budget,
        clock: Clock | None = None,
        *,
        roll: ProcessTable | None = None,
        retry_policy: float = WAIT_SECONDS,
    ) -> None:
        self.budget = budget
        self._folder, self._log = folder, log
        self._clock, self._roll, self._retry_policy = clock or SystemClock(), roll or ProcessTable(), retry_policy
        self._thread: ThreadPoolExecutor | None = None
        self._store: LedgerStore | None = None
        self._looked = float("-inf")
        self._open: dict[int, Reservation] = {}
        self._counts: dict[tuple[str, str, str], CountedPrompt] = {}
        self._told: dict[str, set[str]] = {}
        self._known = set[str]()

    async def close(self) -> None:
        if self._thread:
            self._thread.shutdown(wait=True)
        if self._store:
            self._store.close()
        self._thread = self._store = None

    async def reserve(self, ask: BudgetRequest) -> AttemptBudget | BudgetStopped:
        now = self._clock.now()
        found = capped_accounts(self.budget, ask.owner, now)
        if not found:
            return UNMETERED
        prompt = worst_case.measure_prompt(ask.body, ask.messages)
        input = worst_case.estimate_tokens(
            prompt, self._counts.get((ask.owner.session, ask.model, ask.role), CountedPrompt())
        )
        price = require_price(ask.model, ask.info, input, found)
        most = self.budget.answer if ask.bound else UNBOUND_ANSWER
        longest = worst_case.longest_answer(ask.info, most, ask.most, bound=ask.bound)
        pid, started, boot = self._roll.own_identity()
        hold = Reservation(
            who=ask.owner, role=ask.role, model=ask.model, ts=now, attempt=ask.attempt, input=input, output=longest,
            money=price.cost_of(input, longest) if price else None, pid=pid, started=started, boot=boot,
        )  # fmt: skip
        made = await self._reserve_when_free(found, hold, price, min(LEAST_ANSWER, longest) if ask.bound else longest)
        if isinstance(made, BudgetStopped):
            return made
        if not ask.bound:
            return AttemptBudget(reservation=made, most=ask.most, reserved=made.money, prompt=prompt, bound=False)
        bound = any(each.caps.tokens is not None for each in found) or bool(price and price.output)
        return AttemptBudget(
            reservation=made, most=made.output if bound else ask.most, reserved=made.money, prompt=prompt
        )

    async def _reserve_when_free(
        self, found: list[BudgetAccount], hold: Reservation, price: TokenPrice | None, least: int
    ) -> Reservation | BudgetStopped:
        """Waits while what is missing is only put aside by others: most of them need less than their worst case."""
        began, pause = self._clock.ticks(), FIRST_PAUSE
        while True:
            made, wait = await self._run_in_thread(
                lambda store: self._try_reserve(store, found, hold, price, least), durable=True
            )
            if not wait or self._clock.ticks() - began >= self._retry_policy:
                return made
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _try_reserve(
        self, store: LedgerStore, found: list[BudgetAccount], hold: Reservation, price: TokenPrice | None, least: int
    ) -> tuple[Reservation | BudgetStopped, bool]:
        """The hold, or why there is none; and whether it is worth waiting for others."""
        self._sync_with_log(store, hold.who.session)
        for again in (False, True):
            holds = store.list_reservations()
            stands = store.list_balances(found, holds, self._orphaned_ids(holds))
            now = compute_headroom(found, stands, hold, price, least)
            later = compute_headroom(found, stands, hold, price, least, running=False)
            enough = min(hold.output, max(later.output, least))
            if now.output >= enough:
                made = resize_reservation(hold, enough, price)
                made = replace(made, id=store.add_reservation(made))
                self._open[made.id] = made
                return made, False
            if again or not self._release_finished(store, holds):
                return (later if later.output < enough else now).stop, later.output >= enough
        raise AssertionError("unreachable: the second try returns")

    def _sync_with_log(self, store: LedgerStore, session: str) -> None:
        """What the log tells counts: of this session always, of all now and then."""
        now = self._clock.ticks()
        everybody = now - self._looked > LOOK_SECONDS
        store.catch_up("" if everybody else session)
        if everybody:
            self._release_finished(store, store.list_reservations())
            self._looked = now

    def _orphaned_ids(self, holds: Sequence[Reservation]) -> frozenset[int]:
        return frozenset(each.id for each in holds if self._is_orphaned(each))

    def _is_orphaned(self, hold: Reservation) -> bool:
        """Whether nobody is at it any more."""
        if hold.owner_process == self._roll.own_identity():
            return hold.id not in self._open
        return not self._roll.is_alive(hold.owner_process)

    def _release_finished(self, store: LedgerStore, holds: Sequence[Reservation]) -> bool:
        """Gives back what was put aside for calls that were never made, or whose end is in the log."""
        done = [each for each in holds if self._is_orphaned(each) and store.attempt_outcome(each) != "unknown"]
        for session in {each.who.session for each in done}:
            store.catch_up(session)
        store.drop_reservations(*(each.id for each in done))
        return bool(done)

    async def lost_attempts(self, who: BudgetOwner) -> Sequence[LostAttempt]:
        if not capped_accounts(self.budget, who, self._clock.now()):
            return ()
        if who.session in self._known:
            return ()
        self._known.add(who.session)
        left = await self._run_in_thread(lambda store: self._list_orphaned(store, who.session), durable=False)
        return [_lost_attempt(hold, who.turn) for hold in left]

    def _list_orphaned(self, store: LedgerStore, session: str) -> list[Reservation]:
        self._release_finished(store, store.list_reservations(session))
        return [hold for hold in store.list_reservations(session) if self._is_orphaned(hold)]

    def assumed_usage(self, grant: AttemptBudget) -> tuple[Usage, int | None] | None:
        hold = grant.reservation
        return (Usage(input=hold.input, output=hold.output), hold.money) if hold else None

    async def settle(self, grant: AttemptBudget) -> Sequence[Fact]:
        if grant.reservation is None:
            return ()
        return await self._run_in_thread(
            lambda store: self._settle_reservation(store, grant, grant.reservation), durable=False
        )

    def abandon(self, grant: AttemptBudget) -> None:
        if grant.reservation:
            self._open.pop(grant.reservation.id, None)
            self._known.discard(grant.reservation.who.session)

    def _settle_reservation(self, store: LedgerStore, grant: AttemptBudget, hold: Reservation | None) -> list[Fact]:
        assert hold
        before = store.used_amount("session", hold.who.session)
        store.catch_up(hold.who.session)
        after = store.used_amount("session", hold.who.session)
        store.drop_reservations(hold.id)
        self._open.pop(hold.id, None)
        took = BudgetAmount(after.money - before.money, after.tokens - before.tokens)
        told: list[Fact] = [*overrun_facts(hold, took), *self._new_warnings(store, hold)]
        self._learn_token_count(store, grant, hold)
        return told

    def _learn_token_count(self, store: LedgerStore, grant: AttemptBudget, hold: Reservation) -> None:
        """How many tokens the service counted in this prompt: the next one begins with it."""
        rows = store.query(
            "select cast(data as blob) from event where session = ? and seq > ? and type = 'model.responded'"
            " order by seq desc limit 1",
            (hold.who.session, hold.who.seq),
        )
        input = msgspec.json.decode(rows[0][0], type=_ResponseUsage).usage.input if rows else 0
        if input:
            self._counts[hold.who.session, hold.model, hold.role] = CountedPrompt(
                grant.prompt.text, input, len(grant.prompt.pictures)
            )

    def _new_warnings(self, store: LedgerStore, hold: Reservation) -> list[Fact]:
        found = capped_accounts(self.budget, hold.who, hold.ts)
        told = self._told.setdefault(hold.who.session, set())
        told |= hold.who.warned
        warned: list[Fact] = []
        for account, stand in zip(found, store.list_balances(found, (), frozenset()), strict=True):
            for what, used, cap in capped_measures(account, stand.used):
                fact = BudgetWarned(scope=account.scope, name=account.name, what=what, used=used, cap=cap)
                if used >= cap * WARN_AT and fact.dedup_key not in told:
                    told.add(fact.dedup_key)
                    warned.append(fact)
        return warned

    def budget_spent_error(self, stopped: BudgetStopped, session: str) -> BudgetSpent:
        return budget_spent_error(stopped, session)

    async def account_balances(self, who: BudgetOwner | None = None) -> list[tuple[BudgetAccount, AccountBalance]]:
        """How the budgets stand that a call of `who` would draw on; without anybody, those that all share."""
        now = self._clock.now()
        found = capped_accounts(self.budget, who, now) if who else shared_accounts(self.budget, now)

        def look(store: LedgerStore) -> list[tuple[BudgetAccount, AccountBalance]]:
            store.catch_up()
            self._release_finished(store, store.list_reservations())
            holds = store.list_reservations()
            return list(zip(found, store.list_balances(found, holds, self._orphaned_ids(holds)), strict=True))

        return await self._run_in_thread(look, durable=False) if found else []

    async def unknown_reservations(self) -> list[Reservation]:
        """What is put aside for calls of dead processes whose end nobody knows. Without a file there is none."""
        if not (self._folder / FILE).exists():
            return []

        def look(store: LedgerStore) -> list[Reservation]:
            self._release_finished(store, store.list_reservations())
            return [hold for hold in store.list_reservations() if self._is_orphaned(hold)]

        return await self._run_in_thread(look, durable=False)

    async def _run_in_thread(self, work: Callable[[LedgerStore], T], *, durable: bool) -> T:
        """One transaction, in the purse's own thread: whoever waits for it holds nobody up."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "sylph-purse")
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._run_transaction, work, durable)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # Whoever waited is gone, and nobody will settle what may have been put aside for him.
            done.add_done_callback(self._abandon_unclaimed)
            raise

    def _abandon_unclaimed(self, done: "asyncio.Future[Any]") -> None:
        made = None if done.cancelled() or done.exception() else done.result()
        if isinstance(made, tuple) and isinstance(made[0], Reservation):
            self.abandon(AttemptBudget(reservation=made[0]))

    def _run_transaction(self, work: Callable[[LedgerStore], T], durable: bool) -> T:  # noqa: FBT001 - an executor passes no names
        path = self._folder
        try:
            if self._store is None:
                self._store = LedgerStore(self._folder, self._log)
            store, path = self._store, self._store.path
            try:
                store.begin(durable=durable)
                done = work(store)
                store.commit()
            except BaseException:
                store.rollback()
                raise
        except sqlite3.Error as error:
            said = schema.explain_error(error, path)
            raise (
                unusable_file_error(path, error) if said.trouble.kind in ("store_failed", "store_damaged") else said
            ) from error
        return done


def _lost_attempt(hold: Reservation, now: str) -> LostAttempt:
    usage, asked = Usage(input=hold.input, output=hold.output), hold.who.turn
    return LostAttempt(hold.model, hold.role, hold.attempt, usage, hold.money, "" if asked == now else asked)


class _ResponseUsage(Struct):
    usage: Usage = Usage()
