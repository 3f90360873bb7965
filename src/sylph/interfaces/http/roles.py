"""Roles over HTTP: which model does what."""

from typing import Annotated

from msgspec import Meta, Struct

from sylph.core.errors import NotFound, UserError
from sylph.core.similar import guess
from sylph.engine.routes import FALLBACK, MAIN, ROLES
from sylph.interfaces.assigned import Assigned, assigned
from sylph.interfaces.http.config import IfMatch, change
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes, Versioned

routes = Routes("roles")
Name = Annotated[str, Meta(min_length=3, max_length=400)]


class RoleBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The models of a role; `fallback` may have several, all others have one. None leaves it to the rest."""

    models: Annotated[list[Name], Meta(max_length=20, description="Each as `provider/model`.")]


EXAMPLE = Assigned(role="judge", model="openai/gpt-5", source="config", work="judges results")


@routes.get("/roles", scope="read", gives=Page[Assigned], errors=(404,), answer=Page(items=[EXAMPLE]))
async def list_(house: House, session: str = "") -> Page[Assigned]:
    """Every role with its model, as configured; with a session, as it is there."""
    house.live.look()
    return Page(items=await assigned(house.app, await house.app.runtime.find(session) if session else None))


@routes.put(
    "/roles/{role}",
    scope="admin",
    gives=Assigned,
    errors=(404, 409, 412),
    example=RoleBody(models=["openai/gpt-5"]),
    answer=EXAMPLE,
)
async def put(house: House, role: str, body: RoleBody, if_match: IfMatch = "") -> Versioned[Assigned]:
    """Give a role to a model, for all sessions that say nothing else. `main` is the default model."""
    if role not in ROLES:
        raise NotFound(f"There is no role {role!r}.{guess(role, ROLES)}", next=[f"the roles: {', '.join(ROLES)}"])
    if len(body.models) > 1 and role != FALLBACK:
        raise UserError(f"{role!r} has one model, not {len(body.models)}.", next=["give one, or none"])
    for model in body.models:
        await house.app.choose(model)
    key = "model" if role == MAIN else f"roles.{role}"
    value = body.models if role == FALLBACK else next(iter(body.models), "")
    made = await change(house, if_match, {key: value})
    now = await assigned(house.app)
    return Versioned(next(one for one in now if one.role == role), made.tag)
