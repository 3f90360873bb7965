"""`sylph session archive`, `pin` and their opposites: where a session stands in the lists."""

import click

from sylph.app import App
from sylph.core.commands import Archive, Command, Pin
from sylph.interfaces.cli.door import Door, done
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.picker import session_named, session_names


def _marking(name: str, help: str, command: Command, said: str, **told: bool) -> click.Command:
    @click.command(name, help=help)
    @click.argument("session", required=False, default="", shell_complete=session_names)
    @json_option
    @click.pass_obj
    def mark(door: Door, session: str, *, as_json: bool) -> int:
        async def work(app: App) -> int:
            summary = await session_named(app.runtime, session, f"sylph session {name}")
            await app.runtime.send(summary.id, command)
            return done(f"{summary.id} {said}", summary.id, as_json=as_json, **told)

        return door.run(work)

    return mark


archive = _marking(
    "archive",
    "Put a session aside: lists leave it out, nothing else changes.",
    Archive(),
    "is put aside. See those: sylph session list --archived",
    archived=True,
)
unarchive = _marking(
    "unarchive", "Take a session up again.", Archive(on=False), "is in the list again.", archived=False
)
pin = _marking("pin", "Keep a session at the top of the list.", Pin(), "is pinned.", pinned=True)
unpin = _marking("unpin", "Do not keep it there any longer.", Pin(on=False), "is not pinned any more.", pinned=False)
