"""`sylph models`: what there is to think with."""

import sys
from pathlib import Path

import click
from msgspec.structs import asdict

from sylph.app import App
from sylph.core.errors import NoModel, UserError
from sylph.core.provider import ModelInfo
from sylph.core.similar import guess
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.models_local import add, install, remove
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.reach import Reached, reach
from sylph.interfaces.render import flat, money, size
from sylph.providers.local.models import LocalModel

CHAT_ONLY = "chat only"


class Listing(click.Group):
    """A group whose first word may also be a part of a model's name: then the models are listed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {*self.commands, *ctx.help_option_names}
        words = [word for word in args if not word.startswith("-")]
        if len(words) > 1 and args[0] == words[0] and args[0] not in known and (meant := guess(args[0], self.commands)):
            raise UserError(f"There is no command sylph models {args[0]!r}.{meant}", next=["sylph models --help"])
        return super().parse_args(ctx, args if args and args[0] in known else ["list", *args])


@click.group(cls=Listing)
def command() -> None:
    """List the models that can be used, and bring models to this machine.

    `sylph models` alone is `sylph models list`.
    """


@command.command("list")
@click.argument("filter", default="")
@json_option
@click.pass_obj
def listed(door: Door, filter: str, *, as_json: bool) -> int:
    """List the models that can be used now. FILTER is a part of the name."""
    reached, best = door.run(_look)
    rows = [(f"{one.name}/{info.name}", one, info) for one in reached for info in one.models]
    rows = [(name, one, info) for name, one, info in rows if filter.lower() in name.lower()]
    if as_json:
        return put_json([_told(name, one, info, default=name == best) for name, one, info in rows])
    for one in reached:
        if one.trouble and one.configured:
            sys.stderr.write(f"sylph: {one.name} at {one.url}: {flat(one.trouble.message, 200)}\n")
    if not rows and not filter:
        raise NoModel(
            "There is no model to think with.", next=["sylph doctor", "sylph models install small", "sylph tour"]
        )
    table = [
        [f"{'*' if name == best else ' '} {flat(name, 60)}", *_known(info), _where(one, info)]
        for name, one, info in rows
    ]
    if not table:
        put(f"No model has {filter!r} in its name.{guess(filter, command.commands)}")
        return 0
    put_table([["  MODEL", "WINDOW", "IN", "OUT", "TAKES", "FROM"], *table], drop=(5, 2, 3, 4, 1))
    for one in reached:
        if one.key_from and any(each is one for _, each, _ in rows):
            sys.stderr.write(f"{one.name}: {one.key_from}\n")
        if one.elsewhere:
            sys.stderr.write(f"{one.name}: no key is sent to {one.url}, for {one.elsewhere}\n")
    return 0


command.add_command(install)
command.add_command(add)
command.add_command(remove)


def _told(name: str, one: Reached, info: ModelInfo, *, default: bool) -> dict[str, object]:
    return {"id": name, "default": default, **asdict(info), "from": one.url, "key_from": one.key_from}


async def _look(app: App) -> tuple[list[Reached], str]:
    reached = await reach(app, seconds=5.0)
    try:
        best = await app.choose()
    except UserError:
        best = ""
    return reached, best


def _known(info: ModelInfo) -> list[str]:
    prices = [
        f"{money(price)}/M" if price else "free" if price == 0 else "-" for price in (info.price_in, info.price_out)
    ]
    return [f"{info.window:,}" if info.window else "-", *prices, _takes(info)]


def _takes(info: ModelInfo) -> str:
    """What it can be given besides text, as far as that is known."""
    if info.calls is False:
        return CHAT_ONLY
    return ", ".join(["tools"] * bool(info.calls) + ["images"] * bool(info.sees)) or "-"


def _where(one: Reached, info: ModelInfo) -> str:
    if not isinstance(info, LocalModel):
        return one.url
    return f"{flat(Path(info.path).name, 60)}, {size(info.size) if info.size else 'gone'}"
