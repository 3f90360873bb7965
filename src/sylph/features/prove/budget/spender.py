"""A process full of agents that spend as much as they are let, until the budget stops them or somebody kills it."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from sylph.core import commands, facts
from sylph.core.errors import UserError
from sylph.core.facts.budget import Budget, BudgetCaps
from sylph.core.provider import ModelInfo
from sylph.engine.budget.ledger import SharedBudgetLedger
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.runtime.runtime import NewSession, Runtime, RuntimeParts
from sylph.features.prove.budget.billing_server import PRICE_IN, PRICE_OUT
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.openai_chat.provider import OpenAIChatProvider
from sylph.providers.endpoint import Endpoint

MODEL = "model"
MILLION = 1_000_000
ANSWER = 400


class SpenderOrders(Struct, frozen=True, kw_only=True):
    """Where to spend, how much may be spent, and with how many agents."""

    folder: str
    port: int
    name: str
    agents: int
    money: int
    tokens: int

    @property
    def store(self) -> Path:
        return Path(self.folder) / "data" / "events.db"

    @property
    def budget(self) -> Budget:
        return Budget(day=BudgetCaps(money=self.money), month=BudgetCaps(tokens=self.tokens), answer=ANSWER)


def run_spender(orders: SpenderOrders) -> None:
    """The whole life of such a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A kill is meant to leave a mess; what is said about it is of no interest.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    asyncio.run(_run_agents(orders))


async def _run_agents(orders: SpenderOrders) -> None:
    client = HttpClient()
    async with build_runtime(orders, client) as runtime:
        async for _ in runtime.resume_all(at_once=orders.agents):
            pass
        await asyncio.gather(*(_spend_until_stopped(runtime, Path(orders.folder)) for _ in range(orders.agents)))
    await client.close()


def build_runtime(orders: SpenderOrders, client: HttpClient) -> Runtime:
    info = ModelInfo(name=MODEL, price_in=PRICE_IN * MILLION, price_out=PRICE_OUT * MILLION, output=ANSWER)
    url = f"http://127.0.0.1:{orders.port}/v1"
    endpoint = Endpoint(name="till", base_url=url, api_key=orders.name, models={MODEL: info})
    gateway = ModelGateway(
        {"till": OpenAIChatProvider(endpoint, client)},
        RetryPolicy(base=0.001, concurrency=orders.agents, failures=1_000_000),
        ledger=SharedBudgetLedger(orders.store.parent, orders.store, orders.budget),
    )
    return Runtime(EventLog.open(orders.store), RuntimeParts(gateway=gateway))


async def _spend_until_stopped(runtime: Runtime, folder: Path) -> None:
    """Asks again and again, in a session of its own, until it is stopped."""
    session = await runtime.create_session(NewSession(workspace=folder, model=f"till/{MODEL}", mode="trust"))
    while True:
        with suppress(UserError):
            await runtime.send(session, commands.Send(text="Spend some more."))
        await runtime.wait_until_idle(session)
        ends = runtime.log.find_facts(session, facts.TurnEnded)
        if ends and ends[0][2].outcome == "budget":
            return
