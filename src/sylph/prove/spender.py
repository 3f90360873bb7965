"""A process full of agents that spend as much as they are let, until the budget stops them or somebody kills it."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from sylph.core import commands, facts
from sylph.core.budget import Budget, Caps
from sylph.core.errors import UserError
from sylph.core.provider import ModelInfo
from sylph.engine.budget.purse import FilePurse
from sylph.engine.gateway import Gateway, Patience
from sylph.engine.log import Log
from sylph.engine.runtime import NewSession, Parts, Runtime
from sylph.net.http import Client
from sylph.prove.till import PRICE_IN, PRICE_OUT
from sylph.providers.endpoint import Endpoint
from sylph.providers.openai_chat import OpenAIChat

MODEL = "model"
MILLION = 1_000_000
ANSWER = 400


class Orders(Struct, frozen=True, kw_only=True):
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
        return Budget(day=Caps(money=self.money), month=Caps(tokens=self.tokens), answer=ANSWER)


def spend(orders: Orders) -> None:
    """The whole life of such a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A kill is meant to leave a mess; what is said about it is of no interest.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    asyncio.run(_spend(orders))


async def _spend(orders: Orders) -> None:
    client = Client()
    async with build(orders, client) as runtime:
        async for _ in runtime.resume_all(at_once=orders.agents):
            pass
        await asyncio.gather(*(_agent(runtime, Path(orders.folder)) for _ in range(orders.agents)))
    await client.close()


def build(orders: Orders, client: Client) -> Runtime:
    info = ModelInfo(name=MODEL, price_in=PRICE_IN * MILLION, price_out=PRICE_OUT * MILLION, output=ANSWER)
    url = f"http://127.0.0.1:{orders.port}/v1"
    endpoint = Endpoint(name="till", base_url=url, api_key=orders.name, models={MODEL: info})
    gateway = Gateway(
        {"till": OpenAIChat(endpoint, client)},
        Patience(base=0.001, concurrency=orders.agents, failures=1_000_000),
        purse=FilePurse(orders.store.parent, orders.store, orders.budget),
    )
    return Runtime(Log.open(orders.store), Parts(gateway=gateway))


async def _agent(runtime: Runtime, folder: Path) -> None:
    """Asks again and again, in a session of its own, until it is stopped."""
    session = await runtime.create(NewSession(workspace=folder, model=f"till/{MODEL}", mode="trust"))
    while True:
        with suppress(UserError):
            await runtime.send(session, commands.Send(text="Spend some more."))
        await runtime.settled(session)
        ends = runtime.log.find(session, facts.TurnEnded)
        if ends and ends[0][2].outcome == "budget":
            return
