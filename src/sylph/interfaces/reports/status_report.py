"""What Sylph is doing, with what, and at what cost: the status as data."""

from typing import Any

from sylph.app import App
from sylph.compose.engine import log_path
from sylph.core.errors import NoModel
from sylph.core.messages import Usage
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.reports.service_probe import ProbedService, probe_services
from sylph.interfaces.text import budget_text
from sylph.interfaces.text.interrupted_turn import interrupted_task, is_interrupted
from sylph.interfaces.text.sandbox_notice import sandbox_layer, sandbox_off_notice

PROBE_SECONDS = 2.0


async def build_status(app: App, reached: list[ProbedService] | None = None) -> dict[str, Any]:
    """Everything the status tells, as data. The services are asked, unless somebody has done so."""
    found = await app.runtime.list_sessions()
    # What was spent in a session stays spent when it goes into the trash.
    paid = [*found, *await app.runtime.list_sessions(deleted=True)]
    reached = await probe_services(app, seconds=PROBE_SECONDS) if reached is None else reached
    store = log_path(app.config)
    return {
        "model": await _default_model(app),
        "mode": app.config.settings.mode,
        "sandbox": _sandbox_status(app),
        "providers": [service_status(one) for one in reached],
        "data": str(app.config.data),
        "bytes": sum(path.stat().st_size for path in store.parent.glob(f"{store.name}*")),
        "sessions": len(found),
        "running": [await _turn_status(app, one) for one in found if one.open_turn and one.pid],
        "interrupted": [await _turn_status(app, one) for one in found if is_interrupted(one)],
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
        "cost": _total_cost(paid),
        "budgets": list(budget_text.budget_rows(await app.budget_balances())),
    }


def _sandbox_status(app: App) -> dict[str, Any]:
    layer, told = sandbox_layer(app), app.config.settings.sandbox
    known = {"layer": layer.name, "said": layer.said} if layer else {"layer": "none", "said": ""}
    return {"enabled": told.enabled, **known, "network": told.network}


async def _default_model(app: App) -> str:
    try:
        return await app.choose_model()
    except NoModel:
        return ""


def service_status(one: ProbedService) -> dict[str, Any]:
    trouble = one.trouble.message if one.trouble else ""
    return {"name": one.name, "url": one.url, "reachable": not trouble, "models": len(one.models), "trouble": trouble}


async def _turn_status(app: App, one: SessionState) -> dict[str, Any]:
    task = await interrupted_task(app.runtime, one)
    known = {"session": one.id, "turn": one.open_turn, "title": one.title, "state": one.state, "pid": one.pid}
    return {**known, "task": task, "unconfined": sandbox_off_notice(one)}


def _total_cost(found: list[SessionState]) -> int | None:
    known = [one.cost for one in found if one.cost is not None]
    return sum(known) if known else None
