"""`sylph prove budget`: many agents in many processes, killed at random, spend against one cap; it must hold."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sylph.core import facts
from sylph.core.facts.budget import BudgetAmount, BudgetStopped
from sylph.engine.budget.audit import audit_ledger
from sylph.engine.budget.ledger import SharedBudgetLedger
from sylph.engine.log.store import EventLog
from sylph.features.prove.budget.billing_server import PRICE_OUT, BillingServer, ServiceBill
from sylph.features.prove.budget.spender import ANSWER, SpenderOrders, build_runtime, run_spender
from sylph.net.http_client import HttpClient

# What one agent may spend on average, in calls at the dearest.
CALLS = 8
BEAT, HANG = 0.05, 120.0
# By the time that so much of the cap is charged, the last kill is due.
SPREAD = 0.5


class BudgetProofOptions(Struct, frozen=True, kw_only=True):
    agents: int = 200
    processes: int = 8
    kills: int = 12
    seed: int = 1


class BudgetProofReport(msgspec.Struct, kw_only=True):
    """Money is in micro-dollars. `counted` is what Sylph takes for spent, `unknown` what of it nobody knows."""

    agents: int
    processes: int
    kills: int
    killed_calls: int
    cap: int
    cap_tokens: int
    bill: ServiceBill
    counted: int
    counted_tokens: int
    unknown: int
    stopped: int
    seconds: float
    problems: list[str]
    scratch: str = ""

    @property
    def ok(self) -> bool:
        return not self.problems


BudgetProgress = Callable[[ServiceBill, int, int], None]
"""The bill so far, the cap, and how many were killed."""


def prove_budget(wish: BudgetProofOptions, progress: BudgetProgress) -> BudgetProofReport:
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="sylph-prove-"))
    try:
        report = asyncio.run(_run_proof(wish, folder, progress))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    report.seconds = round(time.monotonic() - began, 1)
    if report.ok:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        report.scratch = str(folder)
    return report


async def _run_proof(wish: BudgetProofOptions, folder: Path, progress: BudgetProgress) -> BudgetProofReport:
    money = wish.agents * CALLS * ANSWER * PRICE_OUT // 2
    each = max(wish.agents // wish.processes, 1)
    async with BillingServer(wish.seed) as till:
        # Tokens are limited too, a little less tightly: both must hold.
        orders = SpenderOrders(
            folder=str(folder), port=till.port, name="", agents=each, money=money, tokens=money * 3 // PRICE_OUT
        )
        EventLog.open(orders.store).close()
        crowd = _SpenderPool(wish, orders, till, progress)
        try:
            await crowd.run()
        finally:
            crowd.kill_all()
        return await _build_report(wish, orders, till.bill, crowd)


class _SpenderPool:
    """The processes, and the one who kills some of them."""

    def __init__(
        self, wish: BudgetProofOptions, orders: SpenderOrders, till: BillingServer, progress: BudgetProgress
    ) -> None:
        self._wish, self._orders, self._till, self._progress = wish, orders, till, progress
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["sylph.features.prove.budget.spender"])
        self._luck = random.Random(wish.seed)
        self._living: dict[str, BaseProcess] = {}
        self._started = 0
        self.kills = self.killed_calls = 0
        self.hung = False

    async def run(self) -> None:
        began = time.monotonic()
        for _ in range(self._wish.processes):
            self._start_spender()
        while self._living:
            await asyncio.sleep(BEAT)
            for name in [name for name, process in self._living.items() if not process.is_alive()]:
                self._living.pop(name).join()
            self._progress(self._till.bill, self._orders.money, self.kills)
            if self.kills < self._wish.kills and self._living:
                self._kill_busy()
            if time.monotonic() - began > HANG:
                self.hung = True
                return

    def _start_spender(self) -> None:
        self._started += 1
        name = f"spender-{self._started}"
        process = self._context.Process(target=run_spender, args=(replace(self._orders, name=name),), name=name)
        process.start()
        self._living[name] = process

    def _kill_busy(self) -> None:
        """Whoever has calls under way; another takes up what it has left."""
        busy = sorted(name for name in self._living if self._till.busy.get(name))
        # The kills are spread over the time until the money is gone.
        due = self._till.bill.money * (self._wish.kills + 1) > self.kills * self._orders.money * SPREAD
        if not busy or not due:
            return
        name = self._luck.choice(busy)
        process = self._living.pop(name)
        assert process.pid
        self.kills, self.killed_calls = self.kills + 1, self.killed_calls + self._till.busy[name]
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        self._start_spender()

    def kill_all(self) -> None:
        for process in self._living.values():
            with contextlib.suppress(ProcessLookupError):
                if process.pid:
                    os.kill(process.pid, signal.SIGKILL)
            process.join()


async def _build_report(
    wish: BudgetProofOptions, orders: SpenderOrders, bill: ServiceBill, crowd: _SpenderPool
) -> BudgetProofReport:
    ledger = SharedBudgetLedger(orders.store.parent, orders.store, orders.budget)
    stands = {account.scope: stand for account, stand in await ledger.account_balances()}
    await ledger.close()
    day, month = stands["day"], stands["month"]
    client = HttpClient()
    async with build_runtime(orders, client) as runtime:
        log = runtime.log
        stopped = sum(len(log.find_facts(session, BudgetStopped)) for session in log.session_ids())
        answered = sum(
            fact.cost or 0
            for session in log.session_ids()
            for _, _, fact in log.find_facts(session, facts.ModelResponded)
        )
    await client.close()
    report = BudgetProofReport(
        agents=wish.agents,
        processes=wish.processes,
        kills=crowd.kills,
        killed_calls=crowd.killed_calls,
        cap=orders.money,
        cap_tokens=orders.tokens,
        bill=bill,
        counted=day.used.money + day.lost.money,
        counted_tokens=month.used.tokens + month.lost.tokens,
        unknown=day.used.money + day.lost.money - answered,
        stopped=stopped,
        seconds=0.0,
        problems=[],
    )
    report.problems = [*_find_problems(wish, report, crowd, day.running), *_find_drift(orders)]
    return report


def _find_problems(
    wish: BudgetProofOptions, report: BudgetProofReport, crowd: _SpenderPool, running: BudgetAmount
) -> list[str]:
    bill = report.bill
    found: list[str] = []
    if bill.money > report.cap or bill.tokens > report.cap_tokens:
        found.append(f"the cap was exceeded: {bill} of {report.cap} and {report.cap_tokens} tokens")
    if report.counted > report.cap or report.counted_tokens > report.cap_tokens:
        found.append(f"more is counted than the cap: {report.counted} of {report.cap}")
    if report.counted < bill.money or report.counted_tokens < bill.tokens:
        found.append(f"the service wants more than is counted: {bill.money} instead of {report.counted}")
    if running.rounds:
        found.append(f"{running.rounds} calls are still put aside as if somebody were at them")
    if crowd.hung:
        found.append(f"it did not end within {HANG:.0f} s")
    if report.stopped < report.agents // 2:
        found.append(f"the budget was not reached: only {report.stopped} were stopped")
    if crowd.kills < wish.kills:
        found.append(f"only {crowd.kills} of {wish.kills} kills came in time")
    return found


def _find_drift(orders: SpenderOrders) -> list[str]:
    found = audit_ledger(orders.store.parent, orders.store)
    return ["the sums do not agree with the log"] if found is None or found.differ or found.damaged else []
