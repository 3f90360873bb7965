"""Models over HTTP: what there is to think with, whether it answers, and who does what."""

import asyncio
from typing import Annotated, Any

from fastapi import Query
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from sylph.core.errors import ErrorReport, NoModel, NotFound, ProviderError, UserError
from sylph.core.messages import Message, Usage
from sylph.core.provider import ModelInfo, ModelRequest
from sylph.core.text.suggestion import suggest_word
from sylph.engine.model.gateway import CallReporter, ModelCall
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.reports.service_probe import ProbedService

routes = RouteGroup("models")
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at the most.")]
Cursor = Annotated[str, Query(max_length=400, description="Where to go on: the `next` of the page before.")]
TEST_TIMEOUT = 60.0
TEST_PROMPT = "Answer with the one word: ok"


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
    trouble: ErrorReport | None = None


class ModelTestBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    model: Annotated[str, Meta(max_length=400, description="`provider/model`, `@role`, or empty for the default.")] = ""


class ModelTestResult(Struct, frozen=True, kw_only=True):
    """Whether a model answers, and how fast."""

    model: str
    ok: bool
    text: str = ""
    ms: int = 0
    first_ms: int = 0
    usage: Usage | None = None
    cost: int | None = None
    """Micro-dollars; null where the price is not known."""
    trouble: ErrorReport | None = None


EXAMPLE = ModelView(id="openai/gpt-5", provider="openai", default=True, window=400_000, price_in=1_250_000)


@routes.get("/models", scope="read", gives=ListPage[ModelView], answer=ListPage(items=[EXAMPLE]))
async def list_models(
    server: ServerState,
    provider: Annotated[str, Query(max_length=200, description="Only this provider's.")] = "",
    q: Annotated[str, Query(max_length=200, description="A part of the name.")] = "",
    limit: Limit = 200,
    cursor: Cursor = "",
) -> ListPage[ModelView]:
    """The models that can be used now."""
    rows = await _all_models(server)
    rows = [one for one in rows if q.lower() in one.id.lower() and provider in ("", one.provider)]
    ids = [one.id for one in rows]
    first = ids.index(cursor) + 1 if cursor in ids else 0
    more = len(rows) > first + limit
    return ListPage(items=rows[first : first + limit], next=ids[first + limit - 1] if more else None)


@routes.get("/models/{id:path}", scope="read", gives=ModelView, errors=(404,), answer=EXAMPLE)
async def get_model(server: ServerState, id: str) -> ModelView:
    """One model, by `provider/model`."""
    rows = {one.id: one for one in await _all_models(server)}
    if id in rows:
        return rows[id]
    raise NotFound(f"There is no model {id!r}.{suggest_word(id, rows)}", next=["GET /api/v1/models"])


@routes.post("/models/refresh", scope="chat", gives=ListPage[ProviderView])
async def refresh_models(server: ServerState) -> ListPage[ProviderView]:
    """Ask every service anew for its models."""
    return ListPage(
        items=[provider_view(one) for one in await server.provider_status.get_providers(server.app, fresh=True)]
    )


@routes.get("/providers", scope="read", gives=ListPage[ProviderView])
async def list_providers(server: ServerState) -> ListPage[ProviderView]:
    """The model services that are set up or run on this machine, and whether they answer."""
    return ListPage(items=[provider_view(one) for one in await server.provider_status.get_providers(server.app)])


@routes.post(
    "/models/test",
    scope="chat",
    gives=ModelTestResult,
    errors=(402, 409, 502),
    example=ModelTestBody(model="openai/gpt-5"),
)
async def test_model(server: ServerState, body: ModelTestBody) -> ModelTestResult:
    """Ask a model for one word. What goes wrong is told in `trouble`."""
    model = await server.app.choose_model(body.model)
    gateway = server.app.runtime.parts.gateway
    request = ModelRequest(
        model=model.partition("/")[2], system="", messages=(Message("user", TEST_PROMPT),), max_tokens=64
    )
    reporter = CallReporter(emit=_ignore_event, show=lambda _: None)
    try:
        async with asyncio.timeout(TEST_TIMEOUT):
            answer = await gateway.call_model(ModelCall(model=model, request=request, role="test"), reporter)
            async with gateway.settle_on_exit(answer, reporter):
                reply = answer.reply
    except ProviderError as error:
        return ModelTestResult(model=model, ok=False, trouble=error.trouble)
    except TimeoutError:
        slow = ErrorReport(
            "timeout", f"{model} did not answer within {TEST_TIMEOUT:.0f} s.", {}, ("GET /api/v1/providers",)
        )
        return ModelTestResult(model=model, ok=False, trouble=slow)
    return ModelTestResult(
        model=model,
        ok=True,
        text=reply.text[:200],
        ms=answer.ms,
        first_ms=answer.first_ms,
        usage=reply.usage,
        cost=answer.cost,
    )


async def _ignore_event(_: object) -> None:
    """Nothing of it belongs to a session."""


async def _all_models(server: ServerState) -> list[ModelView]:
    try:
        default = await server.app.choose_model()
    except (NoModel, UserError):
        default = ""
    return [
        _model_view(one, info, default)
        for one in await server.provider_status.get_providers(server.app)
        for info in one.models
    ]


def _model_view(one: ProbedService, info: ModelInfo, default: str) -> ModelView:
    id = f"{one.name}/{info.name}"
    known: dict[str, Any] = {key: value for key, value in asdict(info).items() if key in ModelView.__struct_fields__}
    view = ModelView(id=id, provider=one.name, default=id == default, source=one.url, key_from=one.key_from)
    return replace(view, **known)


def provider_view(one: ProbedService) -> ProviderView:
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
