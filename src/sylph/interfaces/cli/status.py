"""`sylph status`: what Sylph is doing, with what, and at what cost."""

import asyncio
import sys
from typing import Any

import click

from sylph.app import App, store_of
from sylph.core.errors import NoModel
from sylph.core.messages import Usage
from sylph.core.text import count
from sylph.engine.summary import Summary
from sylph.interfaces import allowance
from sylph.interfaces.cli.confinement import OFF, layer_of, switched_off
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.pending import is_interrupted, task_of
from sylph.interfaces.cli.reach import Reached, reach
from sylph.interfaces.cli.table import aligned
from sylph.interfaces.render import flat, size, spent

SECONDS = 2.0
CLEAR = "\x1b[H\x1b[2J"


@click.command()
@click.option("--live", is_flag=True, help="Again every second, until Ctrl-C.")
@json_option
@click.pass_obj
def command(door: Door, *, live: bool, as_json: bool) -> int:
    """Show the model, the services, the store, open turns, open questions and the cost so far."""

    async def work(app: App) -> int:
        while True:
            facts = await look(app)
            if as_json:
                put_json(facts)
            else:
                put((CLEAR if live and sys.stdout.isatty() else "") + "\n".join(shown(facts)))
            sys.stdout.flush()
            if not live:
                return 0
            await asyncio.sleep(1)

    return door.run(work)


async def look(app: App) -> dict[str, Any]:
    """Everything the status tells, as data."""
    found = await app.runtime.sessions()
    reached = await reach(app, seconds=SECONDS)
    store = store_of(app.config)
    return {
        "model": await _model(app),
        "mode": app.config.settings.mode,
        "sandbox": _sandbox(app),
        "providers": [_service(one) for one in reached],
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
        "usage": sum((one.usage for one in found), Usage()),
        "cost": _total(found),
        "budgets": list(allowance.rows(await app.budgets())),
    }


def _sandbox(app: App) -> dict[str, Any]:
    layer, told = layer_of(app), app.config.settings.sandbox
    known = {"layer": layer.name, "said": layer.said} if layer else {"layer": "none", "said": ""}
    return {"enabled": told.enabled, **known, "network": told.network}


def _sandbox_text(told: dict[str, Any]) -> str:
    return f"{told['said']}, network {told['network']}" if told["enabled"] else f"{OFF} (sandbox.enabled)"


async def _model(app: App) -> str:
    try:
        return await app.choose()
    except NoModel:
        return ""


def _service(one: Reached) -> dict[str, Any]:
    trouble = one.trouble.message if one.trouble else ""
    return {"name": one.name, "url": one.url, "reachable": not trouble, "models": len(one.models), "trouble": trouble}


async def _turn(app: App, one: Summary) -> dict[str, Any]:
    task = await task_of(app.runtime, one)
    known = {"session": one.id, "turn": one.open_turn, "title": one.title, "state": one.state, "pid": one.pid}
    return {**known, "task": task, "unconfined": switched_off(one)}


def _total(found: list[Summary]) -> int | None:
    known = [one.cost for one in found if one.cost is not None]
    return sum(known) if known else None


def shown(facts: dict[str, Any]) -> list[str]:
    """The status as a person reads it."""
    rows = [
        ["model", facts["model"] or "none found (sylph doctor)"],
        ["mode", facts["mode"]],
        ["sandbox", _sandbox_text(facts["sandbox"])],
        *(["provider", _provider_text(one)] for one in facts["providers"]),
        ["data", f"{facts['data']}  {size(facts['bytes'])}"],
        ["sessions", f"{facts['sessions']:,} with {count(facts['turns'], 'turn')}"],
        ["used", spent(facts["usage"], facts["cost"]) or "nothing yet"],
        *(["budget", f"{allowance.name_of(one)}: {allowance.line_of(one)}"] for one in facts["budgets"]),
        *(
            ["running", f"{one['session']}  {flat(one['task'], 40)}  {one['state']}  {one['unconfined']}".rstrip()]
            for one in facts["running"]
        ),
        *(["interrupted", f"sylph resume {one['session']}  {flat(one['task'], 40)}"] for one in facts["interrupted"]),
        *(["undelivered", f"sylph resume {one['session']}  {flat(one['title'], 40)}"] for one in facts["undelivered"]),
        *(["question", f"{one['session']}  {flat(one['question'])}"] for one in facts["questions"]),
    ]
    return aligned(rows)


def _provider_text(one: dict[str, Any]) -> str:
    state = count(one["models"], "model") if one["reachable"] else f"not reachable: {flat(one['trouble'], 100)}"
    return f"{one['name']}  {one['url']}  {state}"
