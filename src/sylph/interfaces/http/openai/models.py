"""`/v1/models`: Sylph itself under several names, and the models it can think with."""

import asyncio
from typing import Annotated, Literal

from fastapi import Path
from msgspec import Struct

from sylph.core.errors import NotFound
from sylph.interfaces.http.house import House
from sylph.interfaces.http.openai.begin import SYLPH, model_names
from sylph.interfaces.http.route import Routes
from sylph.providers import choose, discover

routes = Routes("openai", prefix="/v1")
# A service that does not answer by then is left out.
GLANCE = 2.0


class Model(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str


class Models(Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: list[Model]


EXAMPLE = Model(id=SYLPH, owned_by=SYLPH)


@routes.get("/models", scope="chat", gives=Models, answer=Models(data=[EXAMPLE]))
async def list_models(house: House) -> Models:
    """List what can be asked as a model: Sylph, Sylph in stricter modes, and each model of the services set up."""
    app = house.app
    own = [Model(id=name, owned_by=SYLPH) for name in model_names(app.config.settings.server.mode)]
    services = discover.configured(app.sources)
    listed = await asyncio.gather(*(discover.listed(each, app.client, GLANCE) for each in services))
    found = [
        Model(id=f"{service.name}/{name}", owned_by=service.name)
        for service, models in zip(services, listed, strict=True)
        for name in choose.usable(info.name for info in models)
    ]
    return Models(data=[*own, *found])


@routes.get("/models/{id:path}", scope="chat", gives=Model, errors=(404,), answer=EXAMPLE)
async def get_model(house: House, id: Annotated[str, Path(max_length=300)]) -> Model:
    """Get a model by its name. One that no service lists may be there all the same, and is found when it is asked."""
    for model in (await list_models(house)).data:
        if model.id == id:
            return model
    raise NotFound(
        f"There is no model {id!r}.", kind="model_not_found", details={"param": "model"}, next=["/v1/models"]
    )
