"""`sylph status`: what Sylph is doing, with what, and at what cost."""

import asyncio
import sys
from typing import Any

import click

from sylph.app import App
from sylph.core.text import count
from sylph.interfaces import allowance
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.table import aligned
from sylph.interfaces.confinement import OFF
from sylph.interfaces.own.resident import resident
from sylph.interfaces.render import flat, size, spent
from sylph.interfaces.standing import look

CLEAR = "\x1b[H\x1b[2J"


@click.command()
@click.option("--live", is_flag=True, help="Again every second, until Ctrl-C.")
@json_option
@click.pass_obj
def command(door: Door, *, live: bool, as_json: bool) -> int:
    """Show the model, the services, the store, open turns, open questions and the cost so far."""

    async def work(app: App) -> int:
        while True:
            facts = {"server": resident(app.config.data), **await look(app)}
            if as_json:
                put_json(facts)
            else:
                put((CLEAR if live and sys.stdout.isatty() else "") + "\n".join(shown(facts)))
            sys.stdout.flush()
            if not live:
                return 0
            await asyncio.sleep(1)

    return door.run(work)


def _sandbox_text(told: dict[str, Any]) -> str:
    return f"{told['said']}, network {told['network']}" if told["enabled"] else f"{OFF} (sandbox.enabled)"


def shown(facts: dict[str, Any]) -> list[str]:
    """The status as a person reads it."""
    rows = [
        *([["server", facts["server"].told]] if facts["server"] else []),
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
