"""Roles over HTTP: which model does what."""

from typing import Annotated

from msgspec import Meta, Struct

from sylph.core.errors import NotFound, UserError
from sylph.core.text.suggestion import suggest_word
from sylph.engine.model.routes import FALLBACK, MAIN, ROLES
from sylph.interfaces.http.kit.route import ListPage, RouteGroup, Versioned
from sylph.interfaces.http.settings.config import IfMatch, change_settings
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.reports.role_report import RoleAssignment, list_role_assignments

routes = RouteGroup("roles")
ModelName = Annotated[str, Meta(min_length=3, max_length=400)]


class RoleBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The models of a role; `fallback` may have several, all others have one. None leaves it to the rest."""

    models: Annotated[list[ModelName], Meta(max_length=20, description="Each as `provider/model`.")]


EXAMPLE = RoleAssignment(role="judge", model="openai/gpt-5", source="config", work="judges results")


@routes.get("/roles", scope="read", gives=ListPage[RoleAssignment], errors=(404,), answer=ListPage(items=[EXAMPLE]))
async def list_roles(server: ServerState, session: str = "") -> ListPage[RoleAssignment]:
    """Every role with its model, as configured; with a session, as it is there."""
    server.live_config.check_files()
    return ListPage(
        items=await list_role_assignments(
            server.app, await server.app.runtime.find_session(session) if session else None
        )
    )


@routes.put(
    "/roles/{role}",
    scope="admin",
    gives=RoleAssignment,
    errors=(404, 409, 412),
    example=RoleBody(models=["openai/gpt-5"]),
    answer=EXAMPLE,
)
async def put_role(server: ServerState, role: str, body: RoleBody, if_match: IfMatch = "") -> Versioned[RoleAssignment]:
    """Give a role to a model, for all sessions that say nothing else. `main` is the default model."""
    if role not in ROLES:
        raise NotFound(
            f"There is no role {role!r}.{suggest_word(role, ROLES)}", next=[f"the roles: {', '.join(ROLES)}"]
        )
    if len(body.models) > 1 and role != FALLBACK:
        raise UserError(f"{role!r} has one model, not {len(body.models)}.", next=["give one, or none"])
    for model in body.models:
        await server.app.choose_model(model)
    key = "model" if role == MAIN else f"roles.{role}"
    value = body.models if role == FALLBACK else next(iter(body.models), "")
    made = await change_settings(server, if_match, {key: value})
    now = await list_role_assignments(server.app)
    return Versioned(next(one for one in now if one.role == role), made.tag)
