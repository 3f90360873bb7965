"""`sylph status`: what Sylph is doing, with what, and at what cost."""

import asyncio
import sys
from typing import Any

import click

from sylph.app import App
from sylph.core.text.formatting import count_noun
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.kit.table import align_rows
from sylph.interfaces.local_socket.server_lock import find_running_server
from sylph.interfaces.reports.status_report import build_status
from sylph.interfaces.text import budget_text
from sylph.interfaces.text.render import format_size, format_usage, one_line
from sylph.interfaces.text.sandbox_notice import SANDBOX_OFF

CLEAR_SCREEN = "\x1b[H\x1b[2J"


@click.command()
@click.option("--live", is_flag=True, help="Again every second, until Ctrl-C.")
@json_option
@click.pass_obj
def command(cli: CliContext, *, live: bool, as_json: bool) -> int:
    """Show the model, the services, the store, open turns, open questions and the cost so far."""

    async def work(app: App) -> int:
        while True:
            facts = {"server": find_running_server(app.config.data), **await build_status(app)}
            if as_json:
                print_json(facts)
            else:
                print_text((CLEAR_SCREEN if live and sys.stdout.isatty() else "") + "\n".join(status_lines(facts)))
            sys.stdout.flush()
            if not live:
                return 0
            await asyncio.sleep(1)

    return cli.run(work)


def _sandbox_text(told: dict[str, Any]) -> str:
    return f"{told['said']}, network {told['network']}" if told["enabled"] else f"{SANDBOX_OFF} (sandbox.enabled)"


def status_lines(facts: dict[str, Any]) -> list[str]:
    """The status as a person reads it."""
    rows = [
        *([["server", facts["server"].description]] if facts["server"] else []),
        ["model", facts["model"] or "none found (sylph doctor)"],
        ["mode", facts["mode"]],
        ["sandbox", _sandbox_text(facts["sandbox"])],
        *(["provider", _provider_text(one)] for one in facts["providers"]),
        ["data", f"{facts['data']}  {format_size(facts['bytes'])}"],
        ["sessions", f"{facts['sessions']:,} with {count_noun(facts['turns'], 'turn')}"],
        ["used", format_usage(facts["usage"], facts["cost"]) or "nothing yet"],
        *(["budget", f"{budget_text.budget_name(one)}: {budget_text.budget_line(one)}"] for one in facts["budgets"]),
        *(
            ["running", f"{one['session']}  {one_line(one['task'], 40)}  {one['state']}  {one['unconfined']}".rstrip()]
            for one in facts["running"]
        ),
        *(
            ["interrupted", f"sylph resume {one['session']}  {one_line(one['task'], 40)}"]
            for one in facts["interrupted"]
        ),
        *(
            ["undelivered", f"sylph resume {one['session']}  {one_line(one['title'], 40)}"]
            for one in facts["undelivered"]
        ),
        *(["question", f"{one['session']}  {one_line(one['question'])}"] for one in facts["questions"]),
    ]
    return align_rows(rows)


def _provider_text(one: dict[str, Any]) -> str:
    state = (
        count_noun(one["models"], "model") if one["reachable"] else f"not reachable: {one_line(one['trouble'], 100)}"
    )
    return f"{one['name']}  {one['url']}  {state}"
