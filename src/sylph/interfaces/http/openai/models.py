"""`/v1/models`: Sylph itself under several names, and the models it can think with."""

import asyncio
from typing import Annotated, Literal

from fastapi import Path
from msgspec import Struct

from sylph.core.errors import NotFound
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.openai.start import SYLPH, model_names
from sylph.interfaces.http.state.server_state import ServerState
from sylph.providers import discover
from sylph.providers.vendors import model_ranking

routes = RouteGroup("openai", prefix="/v1")
# A service that does not answer by then is left out.
LIST_TIMEOUT = 2.0


class OpenAIModel(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str


class OpenAIModelList(Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]


EXAMPLE = OpenAIModel(id=SYLPH, owned_by=SYLPH)


@routes.get("/models", scope="chat", gives=OpenAIModelList, answer=OpenAIModelList(data=[EXAMPLE]))
async def list_openai_models(server: ServerState) -> OpenAIModelList:
    """List what can be asked as a model: Sylph, Sylph in stricter modes, and each model of the services set up."""
    app = server.app
    own = [OpenAIModel(id=name, owned_by=SYLPH) for name in model_names(app.config.settings.server.mode)]
    services = discover.configured_endpoints(app.sources)
    listed = await asyncio.gather(*(discover.list_models(each, app.client, LIST_TIMEOUT) for each in services))
    found = [
        OpenAIModel(id=f"{service.name}/{name}", owned_by=service.name)
        for service, models in zip(services, listed, strict=True)
        for name in model_ranking.chat_models(info.name for info in models)
    ]
    return OpenAIModelList(data=[*own, *found])


@routes.get("/models/{id:path}", scope="chat", gives=OpenAIModel, errors=(404,), answer=EXAMPLE)
async def get_openai_model(server: ServerState, id: Annotated[str, Path(max_length=300)]) -> OpenAIModel:
    """Get a model by its name. One that no service lists may be there all the same, and is found when it is asked."""
    for model in (await list_openai_models(server)).data:
        if model.id == id:
            return model
    raise NotFound(
        f"There is no model {id!r}.", kind="model_not_found", details={"param": "model"}, next=["/v1/models"]
    )
