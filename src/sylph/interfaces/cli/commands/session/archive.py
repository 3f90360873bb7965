"""`sylph session archive`, `pin` and their opposites: where a session stands in the lists."""

import click

from sylph.app import App
from sylph.core.commands import Archive, Command, Pin
from sylph.interfaces.cli.kit.cli_context import CliContext, print_result
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids, find_or_pick_session


def _make_mark_command(name: str, help: str, command: Command, said: str, **told: bool) -> click.Command:
    @click.command(name, help=help)
    @click.argument("session", required=False, default="", shell_complete=complete_session_ids)
    @json_option
    @click.pass_obj
    def mark(cli: CliContext, session: str, *, as_json: bool) -> int:
        async def work(app: App) -> int:
            summary = await find_or_pick_session(app.runtime, session, f"sylph session {name}")
            await app.runtime.send(summary.id, command)
            return print_result(f"{summary.id} {said}", summary.id, as_json=as_json, **told)

        return cli.run(work)

    return mark


archive = _make_mark_command(
    "archive",
    "Put a session aside: lists leave it out, nothing else changes.",
    Archive(),
    "is put aside. See those: sylph session list --archived",
    archived=True,
)
unarchive = _make_mark_command(
    "unarchive", "Take a session up again.", Archive(on=False), "is in the list again.", archived=False
)
pin = _make_mark_command("pin", "Keep a session at the top of the list.", Pin(), "is pinned.", pinned=True)
unpin = _make_mark_command(
    "unpin", "Do not keep it there any longer.", Pin(on=False), "is not pinned any more.", pinned=False
)
