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

from sylph.core.budget import Amount, Budget, BudgetStopped, BudgetWarned, spent
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import BudgetSpent
from sylph.core.events import Fact
from sylph.core.messages import Message, Usage
from sylph.core.provider import ModelInfo
from sylph.engine import schema
from sylph.engine.budget import worst
from sylph.engine.budget.accounts import Account, Payer, accounts, common
from sylph.engine.budget.room import exceeded, measures, price_of, room, sized
from sylph.engine.budget.store import FILE, Hold, Roll, Stand, Store, broken
from sylph.engine.budget.worst import LEAST, UNBOUND, Counted, Price, Prompt

WARN_AT = 0.8
# How often a process looks at what others have done without telling the purse: those that have no budget, or died.
LOOK_SECONDS = 30.0
# How long a call waits for others to give back what they have put aside and did not need.
WAIT_SECONDS, FIRST_PAUSE, LONGEST_PAUSE = 120.0, 0.01, 0.5

T = TypeVar("T")


class Ask(Struct, frozen=True, kw_only=True):
    """A call that is about to be made."""

    who: Payer
    model: str
    role: str
    body: int
    messages: Sequence[Message]
    info: ModelInfo
    most: int | None = None
    attempt: int = 1
    bound: bool = True
    """Whether the service can be told how long its answer may be."""


class Grant(Struct, frozen=True, kw_only=True):
    """What was put aside for an attempt, and how long its answer may be for that; nothing, where nothing is counted."""

    hold: Hold | None = None
    most: int | None = None
    reserved: int | None = None
    prompt: Prompt = Prompt(0)
    bound: bool = True


NOTHING = Grant()


class Lost(NamedTuple):
    """An attempt that a dead process left behind: nobody knows whether it was answered."""

    model: str
    role: str
    attempt: int
    usage: Usage
    cost: int | None
    turn: str = ""
    """The turn in which it was asked, where that is not the one that finds it."""


class Purse(Protocol):
    async def reserve(self, ask: Ask) -> Grant | BudgetStopped:
        """Puts the worst case aside. A BudgetStopped is to be written, and then the call is not made."""
        ...

    async def lost(self, who: Payer) -> Sequence[Lost]:
        """What an earlier process asked for in this session, and nobody heard the end of. To be written down."""
        ...

    def counted(self, grant: Grant) -> tuple[Usage, int | None] | None:
        """What an attempt whose end is not known is counted at; None where nothing is counted."""
        ...

    async def settle(self, grant: Grant) -> Sequence[Fact]:
        """After the log knows how it ended. What is returned is to be told."""
        ...

    def leave(self, grant: Grant) -> None:
        """Nobody will settle it: the log tells the next call of the session how it ended, or does not."""
        ...

    def spent(self, stopped: BudgetStopped, session: str) -> BudgetSpent: ...
    async def close(self) -> None: ...


class NoPurse:
    """No budget: nothing is counted, and no file is touched."""

    async def reserve(self, ask: Ask) -> Grant | BudgetStopped:  # noqa: ARG002 - whatever it is
        return NOTHING

    async def lost(self, who: Payer) -> Sequence[Lost]:  # noqa: ARG002 - the same
        return ()

    def counted(self, grant: Grant) -> tuple[Usage, int | None] | None:  # noqa: ARG002 - the same
        return None

    async def settle(self, grant: Grant) -> Sequence[Fact]:  # noqa: ARG002 - the same
        return ()

    def leave(self, grant: Grant) -> None:
        """There was nothing put aside."""

    def spent(self, stopped: BudgetStopped, session: str) -> BudgetSpent:
        return spent(stopped, session)

    async def close(self) -> None:
        """There is nothing to close."""


class FilePurse:
    """A purse that all processes on one store share. One thread of its own does the writing."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        budget: Budget,
        clock: Clock | None = None,
        *,
        roll: Roll | None = None,
        patience: float = WAIT_SECONDS,
    ) -> None:
        self.budget = budget
        self._folder, self._log = folder, log
        self._clock, self._roll, self._patience = clock or SystemClock(), roll or Roll(), patience
        self._thread: ThreadPoolExecutor | None = None
        self._store: Store | None = None
        self._looked = float("-inf")
        self._open: dict[int, Hold] = {}
        self._counts: dict[tuple[str, str, str], Counted] = {}
        self._told: dict[str, set[str]] = {}
        self._known = set[str]()

    async def close(self) -> None:
        if self._thread:
            self._thread.shutdown(wait=True)
        if self._store:
            self._store.close()
        self._thread = self._store = None

    async def reserve(self, ask: Ask) -> Grant | BudgetStopped:
        now = self._clock.now()
        found = accounts(self.budget, ask.who, now)
        if not found:
            return NOTHING
        prompt = worst.measure(ask.body, ask.messages)
        input = worst.tokens(prompt, self._counts.get((ask.who.session, ask.model, ask.role), Counted()))
        price = price_of(ask.model, ask.info, input, found)
        most = self.budget.answer if ask.bound else UNBOUND
        longest = worst.longest(ask.info, most, ask.most, bound=ask.bound)
        pid, started, boot = self._roll.me()
        hold = Hold(
            who=ask.who, role=ask.role, model=ask.model, ts=now, attempt=ask.attempt, input=input, output=longest,
            money=price.cost(input, longest) if price else None, pid=pid, started=started, boot=boot,
        )  # fmt: skip
        made = await self._patiently(found, hold, price, min(LEAST, longest) if ask.bound else longest)
        if isinstance(made, BudgetStopped):
            return made
        if not ask.bound:
            return Grant(hold=made, most=ask.most, reserved=made.money, prompt=prompt, bound=False)
        bound = any(each.caps.tokens is not None for each in found) or bool(price and price.output)
        return Grant(hold=made, most=made.output if bound else ask.most, reserved=made.money, prompt=prompt)

    async def _patiently(
        self, found: list[Account], hold: Hold, price: Price | None, least: int
    ) -> Hold | BudgetStopped:
        """Waits while what is missing is only put aside by others: most of them need less than their worst case."""
        began, pause = self._clock.ticks(), FIRST_PAUSE
        while True:
            made, wait = await self._do(lambda store: self._try(store, found, hold, price, least), durable=True)
            if not wait or self._clock.ticks() - began >= self._patience:
                return made
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _try(
        self, store: Store, found: list[Account], hold: Hold, price: Price | None, least: int
    ) -> tuple[Hold | BudgetStopped, bool]:
        """The hold, or why there is none; and whether it is worth waiting for others."""
        self._look(store, hold.who.session)
        for again in (False, True):
            holds = store.holds()
            stands = store.stands(found, holds, self._dead(holds))
            now = room(found, stands, hold, price, least)
            later = room(found, stands, hold, price, least, running=False)
            enough = min(hold.output, max(later.output, least))
            if now.output >= enough:
                made = sized(hold, enough, price)
                made = replace(made, id=store.put(made))
                self._open[made.id] = made
                return made, False
            if again or not self._tidy(store, holds):
                return (later if later.output < enough else now).stop, later.output >= enough
        raise AssertionError("unreachable: the second try returns")

    def _look(self, store: Store, session: str) -> None:
        """What the log tells counts: of this session always, of all now and then."""
        now = self._clock.ticks()
        everybody = now - self._looked > LOOK_SECONDS
        store.catch_up("" if everybody else session)
        if everybody:
            self._tidy(store, store.holds())
            self._looked = now

    def _dead(self, holds: Sequence[Hold]) -> frozenset[int]:
        return frozenset(each.id for each in holds if self._gone(each))

    def _gone(self, hold: Hold) -> bool:
        """Whether nobody is at it any more."""
        if hold.maker == self._roll.me():
            return hold.id not in self._open
        return not self._roll.lives(hold.maker)

    def _tidy(self, store: Store, holds: Sequence[Hold]) -> bool:
        """Gives back what was put aside for calls that were never made, or whose end is in the log."""
        done = [each for each in holds if self._gone(each) and store.fate(each) != "unknown"]
        for session in {each.who.session for each in done}:
            store.catch_up(session)
        store.drop(*(each.id for each in done))
        return bool(done)

    async def lost(self, who: Payer) -> Sequence[Lost]:
        if not accounts(self.budget, who, self._clock.now()):
            return ()
        if who.session in self._known:
            return ()
        self._known.add(who.session)
        left = await self._do(lambda store: self._left(store, who.session), durable=False)
        return [_lost(hold, who.turn) for hold in left]

    def _left(self, store: Store, session: str) -> list[Hold]:
        self._tidy(store, store.holds(session))
        return [hold for hold in store.holds(session) if self._gone(hold)]

    def counted(self, grant: Grant) -> tuple[Usage, int | None] | None:
        hold = grant.hold
        return (Usage(input=hold.input, output=hold.output), hold.money) if hold else None

    async def settle(self, grant: Grant) -> Sequence[Fact]:
        if grant.hold is None:
            return ()
        return await self._do(lambda store: self._settle(store, grant, grant.hold), durable=False)

    def leave(self, grant: Grant) -> None:
        if grant.hold:
            self._open.pop(grant.hold.id, None)
            self._known.discard(grant.hold.who.session)

    def _settle(self, store: Store, grant: Grant, hold: Hold | None) -> list[Fact]:
        assert hold
        before = store.used("session", hold.who.session)
        store.catch_up(hold.who.session)
        after = store.used("session", hold.who.session)
        store.drop(hold.id)
        self._open.pop(hold.id, None)
        took = Amount(after.money - before.money, after.tokens - before.tokens)
        told: list[Fact] = [*exceeded(hold, took), *self._warnings(store, hold)]
        self._learn(store, grant, hold)
        return told

    def _learn(self, store: Store, grant: Grant, hold: Hold) -> None:
        """How many tokens the service counted in this prompt: the next one begins with it."""
        rows = store.query(
            "select cast(data as blob) from event where session = ? and seq > ? and type = 'model.responded'"
            " order by seq desc limit 1",
            (hold.who.session, hold.who.seq),
        )
        input = msgspec.json.decode(rows[0][0], type=_Usage).usage.input if rows else 0
        if input:
            self._counts[hold.who.session, hold.model, hold.role] = Counted(
                grant.prompt.text, input, len(grant.prompt.pictures)
            )

    def _warnings(self, store: Store, hold: Hold) -> list[Fact]:
        found = accounts(self.budget, hold.who, hold.ts)
        told = self._told.setdefault(hold.who.session, set())
        told |= hold.who.warned
        warned: list[Fact] = []
        for account, stand in zip(found, store.stands(found, (), frozenset()), strict=True):
            for what, used, cap in measures(account, stand.used):
                fact = BudgetWarned(scope=account.scope, name=account.name, what=what, used=used, cap=cap)
                if used >= cap * WARN_AT and fact.key not in told:
                    told.add(fact.key)
                    warned.append(fact)
        return warned

    def spent(self, stopped: BudgetStopped, session: str) -> BudgetSpent:
        return spent(stopped, session)

    async def stands(self, who: Payer | None = None) -> list[tuple[Account, Stand]]:
        """How the budgets stand that a call of `who` would draw on; without anybody, those that all share."""
        now = self._clock.now()
        found = accounts(self.budget, who, now) if who else common(self.budget, now)

        def look(store: Store) -> list[tuple[Account, Stand]]:
            store.catch_up()
            self._tidy(store, store.holds())
            holds = store.holds()
            return list(zip(found, store.stands(found, holds, self._dead(holds)), strict=True))

        return await self._do(look, durable=False) if found else []

    async def unknown(self) -> list[Hold]:
        """What is put aside for calls of dead processes whose end nobody knows. Without a file there is none."""
        if not (self._folder / FILE).exists():
            return []

        def look(store: Store) -> list[Hold]:
            self._tidy(store, store.holds())
            return [hold for hold in store.holds() if self._gone(hold)]

        return await self._do(look, durable=False)

    async def _do(self, work: Callable[[Store], T], *, durable: bool) -> T:
        """One transaction, in the purse's own thread: whoever waits for it holds nobody up."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "sylph-purse")
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._transact, work, durable)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # Whoever waited is gone, and nobody will settle what may have been put aside for him.
            done.add_done_callback(self._unclaimed)
            raise

    def _unclaimed(self, done: "asyncio.Future[Any]") -> None:
        made = None if done.cancelled() or done.exception() else done.result()
        if isinstance(made, tuple) and isinstance(made[0], Hold):
            self.leave(Grant(hold=made[0]))

    def _transact(self, work: Callable[[Store], T], durable: bool) -> T:  # noqa: FBT001 - an executor passes no names
        path = self._folder
        try:
            if self._store is None:
                self._store = Store(self._folder, self._log)
            store, path = self._store, self._store.path
            try:
                store.begin(durable=durable)
                done = work(store)
                store.commit()
            except BaseException:
                store.rollback()
                raise
        except sqlite3.Error as error:
            said = schema.explain(error, path)
            raise (broken(path, error) if said.trouble.kind in ("store_failed", "store_damaged") else said) from error
        return done


def _lost(hold: Hold, now: str) -> Lost:
    usage, asked = Usage(input=hold.input, output=hold.output), hold.who.turn
    return Lost(hold.model, hold.role, hold.attempt, usage, hold.money, "" if asked == now else asked)


class _Usage(Struct):
    usage: Usage = Usage()
