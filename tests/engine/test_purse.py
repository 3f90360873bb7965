"""However processes ask, answer, fail and die: no cap is passed, and the sums are those of the log."""

import asyncio
import tempfile
from math import ceil
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import Fact
from sylph.core.facts.budget import Budget, BudgetAmount, BudgetCaps, BudgetStopped
from sylph.core.messages import Image, Message, Usage
from sylph.core.provider import ModelInfo
from sylph.engine.budget import worst_case
from sylph.engine.budget.accounts import BudgetOwner
from sylph.engine.budget.audit import audit_ledger
from sylph.engine.budget.ledger import AttemptBudget, BudgetRequest, SharedBudgetLedger
from sylph.engine.budget.ledger_store import ProcessIdentity, ProcessTable
from sylph.engine.budget.worst_case import CountedPrompt, PromptSize
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.store import EventLog
from sylph.testing import FakeClock

INFO = ModelInfo(name="m", price_in=1_000_000, price_out=3_000_000, output=500)
BUDGET = Budget(
    session=BudgetCaps(money=9_000), day=BudgetCaps(money=20_000), month=BudgetCaps(tokens=9_000), answer=500
)
SESSIONS, VIEWS = 3, 3
NOW = 1_700_000_000_000
How = Literal["answer", "refuse", "cut", "leave", "die early", "die asked", "die told"]
HOWS: tuple[How, ...] = ("answer", "answer", "refuse", "cut", "leave", "die early", "die asked", "die told")


class Census(ProcessTable):
    """Processes that exist only here."""

    living: set[int]

    def __init__(self, pid: int, living: set[int]) -> None:
        self._pid, self.living = pid, living

    def own_identity(self) -> ProcessIdentity:
        return ProcessIdentity(self._pid, "then", "boot")

    def is_alive(self, process: ProcessIdentity) -> bool:
        return process.pid in self.living


class Call(Struct):
    view: int
    session: str
    grant: AttemptBudget
    usage: Usage
    cost: int


class World:
    """A few processes on one store, and the service that charges them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = EventLog.open(folder / "events.db")
        self.living = set[int]()
        self.views: list[tuple[int, SharedBudgetLedger]] = []
        self.calls: list[Call] = []
        self.charged: dict[str, BudgetAmount] = {}
        self._pids = 0
        self.seqs: dict[str, int] = {}

    async def open(self) -> None:
        for number in range(SESSIONS):
            created = facts.SessionCreated(workspace="/", model="x/m", mode="trust")
            await self.write(f"s{number}", created)
        self.views = [self._view() for _ in range(VIEWS)]

    def _view(self) -> tuple[int, SharedBudgetLedger]:
        self._pids += 1
        self.living.add(self._pids)
        roll = Census(self._pids, self.living)
        store = self.folder / "events.db"
        return self._pids, SharedBudgetLedger(self.folder, store, BUDGET, FakeClock(NOW), roll=roll, retry_policy=0.0)

    async def write(self, session: str, fact: Fact) -> None:
        seq = self.seqs.get(session, 0)
        appended = self.log.append(session, [PendingFact(fact, NOW, "t1", "sylph", 0)], expected=seq)
        await asyncio.wait([appended.done])
        self.seqs[session] = seq + 1

    async def begin(self, view: int, session: str, body: int, share: float) -> None:
        """A call, unless the session has one under way; the service charges when it is sent."""
        if any(call.session == session for call in self.calls):
            return
        _, ledger = self.views[view]
        who = BudgetOwner(session=session, turn="t1", root=session, seq=self.seqs[session])
        for lost in await ledger.lost_attempts(who):
            trouble = ErrorReport("interrupted", "")
            fact = facts.ModelFailed(model=lost.model, trouble=trouble, attempt=1, usage=lost.usage, cost=lost.cost)
            await self.write(session, fact)
        who = BudgetOwner(session=session, turn="t1", root=session, seq=self.seqs[session])
        grant = await ledger.reserve(
            BudgetRequest(owner=who, model="x/m", role="main", body=body, messages=(), info=INFO)
        )
        if isinstance(grant, BudgetStopped):
            return
        assert grant.most
        usage = Usage(input=body // 3, output=max(int(grant.most * share), 1))
        self.calls.append(Call(view, session, grant, usage, usage.input + usage.output * 3))

    async def end(self, number: int, how: How) -> None:
        if not self.calls:
            return
        call = self.calls.pop(number % len(self.calls))
        if how == "die early":
            await self._die(call.view)
            return
        await self.write(call.session, facts.ModelRequested(model="x/m", round=1))
        if how != "refuse":
            before = self.charged.get(call.session, BudgetAmount())
            self.charged[call.session] = before + BudgetAmount(call.cost, call.usage.input + call.usage.output)
        if how == "die asked":
            await self._die(call.view)
            return
        ledger = self.views[call.view][1]
        await self.write(call.session, self._told(call, how, ledger))
        if how == "die told":
            await self._die(call.view)
        elif how == "leave":
            ledger.abandon(call.grant)
        else:
            await ledger.settle(call.grant)

    def _told(self, call: Call, how: How, ledger: SharedBudgetLedger) -> Fact:
        if how in ("refuse", "cut"):
            usage, cost = (ledger.assumed_usage(call.grant) if how == "cut" else None) or (None, None)
            return facts.ModelFailed(model="x/m", trouble=ErrorReport(how, ""), attempt=1, usage=usage, cost=cost)
        return facts.ModelResponded(model="x/m", text="", finish="stop", usage=call.usage, cost=call.cost)

    async def _die(self, view: int) -> None:
        """With the process all that it was at; others of its calls may have been sent, or not."""
        pid, ledger = self.views[view]
        self.living.discard(pid)
        await ledger.close()
        mine, self.calls = [c for c in self.calls if c.view == view], [c for c in self.calls if c.view != view]
        for number, call in enumerate(mine):
            if number % 2:
                await self.write(call.session, facts.ModelRequested(model="x/m", round=1))
                before = self.charged.get(call.session, BudgetAmount())
                self.charged[call.session] = before + BudgetAmount(call.cost, call.usage.input + call.usage.output)
        self.views[view] = self._view()

    async def check(self) -> None:
        total = sum(self.charged.values(), BudgetAmount())
        assert total.money <= 20_000
        assert total.tokens <= 9_000
        assert all(each.money <= 9_000 for each in self.charged.values())
        for account, stand in await self.views[0][1].account_balances(BudgetOwner(session="s0", turn="t1", root="s0")):
            counted = stand.used + stand.lost + stand.running
            want = self.charged.get("s0", BudgetAmount()) if account.scope == "session" else total
            assert counted.money >= want.money
            assert counted.tokens >= want.tokens
            assert account.caps.money is None or counted.money <= account.caps.money
            assert account.caps.tokens is None or counted.tokens <= account.caps.tokens

    async def close(self) -> None:
        while self.calls:
            await self.end(0, "answer")
        await self.check()
        for _, ledger in self.views:
            await ledger.close()
        self.log.close()
        found = audit_ledger(self.folder, self.folder / "events.db")
        assert found is None or (found.differ, found.damaged) == ((), "")


BEGIN = st.tuples(st.integers(0, VIEWS - 1), st.integers(0, SESSIONS - 1), st.integers(30, 3000), st.floats(0, 1))
END = st.tuples(st.integers(0, 9), st.sampled_from(HOWS))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(BEGIN, BEGIN, END), max_size=25))
def test_no_order_of_things_passes_a_cap(steps: list[tuple[int, ...]]) -> None:
    async def play(folder: Path) -> None:
        world = World(folder)
        await world.open()
        try:
            for step in steps:
                if len(step) == 4:
                    await world.begin(step[0], f"s{step[1]}", step[2], step[3])
                else:
                    await world.end(step[0], step[1])  # pyright: ignore[reportArgumentType] - one of HOWS
                await world.check()
        finally:
            await world.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=8), st.floats(0.0, 0.5))
def test_the_prompt_is_never_taken_for_shorter_than_it_is(grows: list[int], density: float) -> None:
    """For any text of two bytes a token or more, whose tokens the service counts as it grows."""
    text, before = 0, CountedPrompt()
    for more in grows:
        text += more
        real = int(text * density)
        assert worst_case.estimate_tokens(PromptSize(text), before) >= real
        before = CountedPrompt(text, real, 0)


def test_pictures_count_apart_and_documents_as_text() -> None:
    picture = Image("a", "image/png", 300_000)
    message = Message("user", "look", images=(picture, Image("b", "application/pdf", 3_000)))
    prompt = worst_case.measure_prompt(500_000, [message])
    assert prompt == PromptSize(100_000, (300_000,))
    assert worst_case.estimate_tokens(prompt, CountedPrompt()) == 50_000 + 50_000
    assert worst_case.estimate_tokens(prompt, CountedPrompt(100_000, 30_000, 1)) == ceil(100_000 / 3)


@pytest.mark.parametrize(
    ("info", "wanted", "longest"),
    [
        (ModelInfo(name="m"), None, 8192),
        (ModelInfo(name="m", output=64_000), None, 16_384),
        (ModelInfo(name="m", output=4_096), None, 4_096),
        (ModelInfo(name="m", output=64_000), 100, 100),
        (ModelInfo(name="m", window=4_000), None, 2_000),
    ],
)
def test_how_long_an_answer_can_be(info: ModelInfo, wanted: int | None, longest: int) -> None:
    assert worst_case.longest_answer(info, 16_384, wanted) == longest


def test_the_dearest_price_counts() -> None:
    assert worst_case.worst_price(ModelInfo(name="m", price_in=3, price_out=15, price_written=4)) == (4, 15)
    assert worst_case.worst_price(ModelInfo(name="m", price_in=3)) is None
    long = ModelInfo(name="m", price_in=3, price_out=15, above=200, above_in=6, above_out=22)
    assert (worst_case.worst_price(long, 200), worst_case.worst_price(long, 201)) == ((3, 15), (6, 22))
    assert worst_case.worst_price(ModelInfo(name="m", price_in=0, price_out=0)) == (0, 0)
