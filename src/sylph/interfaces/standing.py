"""What Sylph is doing, with what, and at what cost: the status as data."""

from typing import Any

from sylph.app import App
from sylph.core.errors import NoModel
from sylph.core.messages import Usage
from sylph.engine.summary import Summary
from sylph.interfaces import allowance
from sylph.interfaces.confinement import layer_of, switched_off
from sylph.interfaces.pending import is_interrupted, task_of
from sylph.interfaces.reach import Reached, reach
from sylph.wiring import store_of

SECONDS = 2.0


async def look(app: App, reached: list[Reached] | None = None) -> dict[str, Any]:
    """Everything the status tells, as data. The services are asked, unless somebody has done so."""
    found = await app.runtime.sessions()
    # What was spent in a session stays spent when it goes into the trash.
    paid = [*found, *await app.runtime.sessions(deleted=True)]
    reached = await reach(app, seconds=SECONDS) if reached is None else reached
    store = store_of(app.config)
    return {
        "model": await _model(app),
        "mode": app.config.settings.mode,
        "sandbox": _sandbox(app),
        "providers": [service(one) for one in reached],
        "data": str(app.config.data),
        "bytes": sum(path.stat().st_size for path in store.parent.glob(f"{store.name}*")),
        "sessions": len(found),
        "running": [await _turn(app, one) for one in found if one.open_turn and one.pid],
        "interrupted": [await _turn(app, one) for one in found if is_interrupted(one)],
        "undelivered": [
            {"session": one.id, "id": id, "title": waiting.parcel.title, "attempts": waiting.attempts}
            for one in found
            for id, waiting in one.outbox.items()
        ],
        "questions": [
            {"session": one.id, "id": asked.id, "question": asked.question}
            for one in found
            for asked in one.asked.values()
        ],
        "turns": sum(one.turns for one in found),
        "usage": sum((one.usage for one in paid), Usage()),
        "cost": _total(paid),
        "budgets": list(allowance.rows(await app.budgets())),
    }


def _sandbox(app: App) -> dict[str, Any]:
    layer, told = layer_of(app), app.config.settings.sandbox
    known = {"layer": layer.name, "said": layer.said} if layer else {"layer": "none", "said": ""}
    return {"enabled": told.enabled, **known, "network": told.network}


async def _model(app: App) -> str:
    try:
        return await app.choose()
    except NoModel:
        return ""


def service(one: Reached) -> dict[str, Any]:
    trouble = one.trouble.message if one.trouble else ""
    return {"name": one.name, "url": one.url, "reachable": not trouble, "models": len(one.models), "trouble": trouble}


async def _turn(app: App, one: Summary) -> dict[str, Any]:
    task = await task_of(app.runtime, one)
    known = {"session": one.id, "turn": one.open_turn, "title": one.title, "state": one.state, "pid": one.pid}
    return {**known, "task": task, "unconfined": switched_off(one)}


def _total(found: list[Summary]) -> int | None:
    known = [one.cost for one in found if one.cost is not None]
    return sum(known) if known else None
