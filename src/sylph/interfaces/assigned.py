"""Which model does what, and who says so."""

from msgspec import Struct

from sylph.app import App
from sylph.core.errors import NoModel
from sylph.engine.routes import ALONE, FALLBACK, MAIN, ROLES
from sylph.engine.summary import Summary

WORK = {
    MAIN: "the conversation",
    "scout": "looks around before the work",
    "judge": "judges results",
    "background": "what nobody waits for: summaries",
    "embed": "turns text into vectors",
    FALLBACK: "takes over a turn whose model does not answer",
}


class Assigned(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """A role and its model. `source` is the session, the config, `main` or what was found; empty where it has none."""

    role: str
    model: str
    source: str
    work: str
    unknown: list[str] = []
    """Which of its models no service is set up for."""


async def assigned(app: App, own: Summary | None = None) -> list[Assigned]:
    """Every role, as configured; with a session, as it is there."""
    try:
        main = own.model if own else await app.choose()
    except NoModel:
        main = ""
    there = {**app.roles, FALLBACK: ", ".join(app.config.settings.roles.fallback)}
    return [_one(app, role, main, there.get(role, ""), own) for role in ROLES]


def _one(app: App, role: str, main: str, set_: str, own: Summary | None) -> Assigned:
    said = own.roles.get(role, "") if own else ""
    alone = role in ALONE
    model = main if role == MAIN else said or set_ or ("" if alone else main)
    if role == MAIN:
        source = "session" if own else "config" if app.config.settings.model else "found" if main else ""
    else:
        source = "session" if said else "config" if set_ else "" if alone else MAIN
    missing = app.unknown(model.split(", ")) if model and role != MAIN else []
    return Assigned(role=role, model=model, source=source, work=WORK[role], unknown=missing)
