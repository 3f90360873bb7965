"""Models over HTTP: what there is to think with, whether it answers, and who does what."""

import asyncio
from typing import Annotated, Any

from fastapi import Query
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from sylph.core.errors import NoModel, NotFound, ProviderError, Trouble, UserError
from sylph.core.messages import Message, Usage
from sylph.core.provider import ModelInfo, Request
from sylph.core.similar import guess
from sylph.engine.gateway import Call, Voice
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.reach import Reached

routes = Routes("models")
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=400, description="Where to go on: the `next` of the page before.")]
SECONDS = 60.0
ASK = "Answer with the one word: ok"


class ModelView(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """A model. Prices are micro-dollars per million tokens; null is unknown, 0 is free."""

    id: str
    provider: str
    default: bool
    window: int | None = None
    price_in: int | None = None
    price_out: int | None = None
    price_cached: int | None = None
    price_written: int | None = None
    output: int | None = None
    """How many tokens an answer may have at the most."""
    sees: bool | None = None
    """Whether it takes images; null is unknown."""
    calls: bool | None = None
    """Whether it is given tools; null is unknown, and taken for yes."""
    source: str = ""
    key_from: str = ""


class ProviderView(Struct, frozen=True, kw_only=True):
    name: str
    url: str
    dialect: str
    configured: bool
    reachable: bool
    models: int
    key_from: str = ""
    trouble: Trouble | None = None


class TestBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    model: Annotated[str, Meta(max_length=400, description="`provider/model`, `@role`, or empty for the default.")] = ""


class Tested(Struct, frozen=True, kw_only=True):
    """Whether a model answers, and how fast."""

    model: str
    ok: bool
    text: str = ""
    ms: int = 0
    first_ms: int = 0
    usage: Usage | None = None
    cost: int | None = None
    """Micro-dollars; null where the price is not known."""
    trouble: Trouble | None = None


EXAMPLE = ModelView(id="openai/gpt-5", provider="openai", default=True, window=400_000, price_in=1_250_000)


@routes.get("/models", scope="read", gives=Page[ModelView], answer=Page(items=[EXAMPLE]))
async def list_(
    house: House,
    provider: Annotated[str, Query(max_length=200, description="Only this provider's.")] = "",
    q: Annotated[str, Query(max_length=200, description="A part of the name.")] = "",
    limit: Limit = 200,
    cursor: Cursor = "",
) -> Page[ModelView]:
    """The models that can be used now."""
    rows = await _all(house)
    rows = [one for one in rows if q.lower() in one.id.lower() and provider in ("", one.provider)]
    ids = [one.id for one in rows]
    first = ids.index(cursor) + 1 if cursor in ids else 0
    more = len(rows) > first + limit
    return Page(items=rows[first : first + limit], next=ids[first + limit - 1] if more else None)


@routes.get("/models/{id:path}", scope="read", gives=ModelView, errors=(404,), answer=EXAMPLE)
async def get(house: House, id: str) -> ModelView:
    """One model, by `provider/model`."""
    rows = {one.id: one for one in await _all(house)}
    if id in rows:
        return rows[id]
    raise NotFound(f"There is no model {id!r}.{guess(id, rows)}", next=["GET /api/v1/models"])


@routes.post("/models/refresh", scope="chat", gives=Page[ProviderView])
async def refresh(house: House) -> Page[ProviderView]:
    """Ask every service anew for its models."""
    return Page(items=[provider_view(one) for one in await house.services.heard(house.app, fresh=True)])


@routes.get("/providers", scope="read", gives=Page[ProviderView])
async def providers(house: House) -> Page[ProviderView]:
    """The model services that are set up or run on this machine, and whether they answer."""
    return Page(items=[provider_view(one) for one in await house.services.heard(house.app)])


@routes.post("/models/test", scope="chat", gives=Tested, errors=(402, 409, 502), example=TestBody(model="openai/gpt-5"))
async def test(house: House, body: TestBody) -> Tested:
    """Ask a model for one word. What goes wrong is told in `trouble`."""
    model = await house.app.choose(body.model)
    gateway = house.app.runtime.parts.gateway
    request = Request(model=model.partition("/")[2], system="", messages=(Message("user", ASK),), max_tokens=64)
    voice = Voice(emit=_unheard, show=lambda _: None)
    try:
        async with asyncio.timeout(SECONDS):
            answer = await gateway.call(Call(model=model, request=request, role="test"), voice)
            async with gateway.settling(answer, voice):
                reply = answer.reply
    except ProviderError as error:
        return Tested(model=model, ok=False, trouble=error.trouble)
    except TimeoutError:
        slow = Trouble("timeout", f"{model} did not answer within {SECONDS:.0f} s.", {}, ("GET /api/v1/providers",))
        return Tested(model=model, ok=False, trouble=slow)
    return Tested(
        model=model,
        ok=True,
        text=reply.text[:200],
        ms=answer.ms,
        first_ms=answer.first_ms,
        usage=reply.usage,
        cost=answer.cost,
    )


async def _unheard(_: object) -> None:
    """Nothing of it belongs to a session."""


async def _all(house: House) -> list[ModelView]:
    try:
        default = await house.app.choose()
    except (NoModel, UserError):
        default = ""
    return [_view(one, info, default) for one in await house.services.heard(house.app) for info in one.models]


def _view(one: Reached, info: ModelInfo, default: str) -> ModelView:
    id = f"{one.name}/{info.name}"
    known: dict[str, Any] = {key: value for key, value in asdict(info).items() if key in ModelView.__struct_fields__}
    view = ModelView(id=id, provider=one.name, default=id == default, source=one.url, key_from=one.key_from)
    return replace(view, **known)


def provider_view(one: Reached) -> ProviderView:
    return ProviderView(
        name=one.name,
        url=one.url,
        dialect=one.dialect,
        configured=one.configured,
        reachable=one.trouble is None,
        models=len(one.models),
        key_from=one.key_from,
        trouble=one.trouble,
    )
