"""Which model does what, and who says so."""

from msgspec import Struct

from sylph.app import App
from sylph.core.errors import NoModel
from sylph.engine.folds.session_state import SessionState
from sylph.engine.model.routes import FALLBACK, MAIN, ROLES, UNSHARED_ROLES

ROLE_DUTIES = {
    MAIN: "the conversation",
    "scout": "looks around before the work",
    "judge": "judges results",
    "background": "what nobody waits for: summaries",
    "embed": "turns text into vectors",
    FALLBACK: "takes over a turn whose model does not answer",
}


class RoleAssignment(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """A role and its model. `source` is the session, the config, `main` or what was found; empty where it has none."""

    role: str
    model: str
    source: str
    work: str
    unknown: list[str] = []
    """Which of its models no service is set up for."""


async def list_role_assignments(app: App, own: SessionState | None = None) -> list[RoleAssignment]:
    """Every role, as configured; with a session, as it is there."""
    try:
        main = own.model if own else await app.choose_model()
    except NoModel:
        main = ""
    there = {**app.roles, FALLBACK: ", ".join(app.config.settings.roles.fallback)}
    return [_role_assignment(app, role, main, there.get(role, ""), own) for role in ROLES]


def _role_assignment(app: App, role: str, main: str, set_: str, own: SessionState | None) -> RoleAssignment:
    said = own.roles.get(role, "") if own else ""
    alone = role in UNSHARED_ROLES
    model = main if role == MAIN else said or set_ or ("" if alone else main)
    if role == MAIN:
        source = "session" if own else "config" if app.config.settings.model else "found" if main else ""
    else:
        source = "session" if said else "config" if set_ else "" if alone else MAIN
    missing = app.unknown_models(model.split(", ")) if model and role != MAIN else []
    return RoleAssignment(role=role, model=model, source=source, work=ROLE_DUTIES[role], unknown=missing)
