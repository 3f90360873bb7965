"""`sylph models`: what there is to think with."""

import sys

import click
from msgspec.structs import asdict

from sylph.app import App
from sylph.core.errors import NoModel
from sylph.core.provider import ModelInfo
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.reach import Reached, reach
from sylph.interfaces.render import flat, money


@click.command()
@click.argument("filter", default="")
@json_option
@click.pass_obj
def command(door: Door, filter: str, *, as_json: bool) -> int:
    """List the models that can be used now. FILTER is a part of the name."""
    reached, best = door.run(_look)
    rows = [(f"{one.name}/{info.name}", info) for one in reached for info in one.models]
    rows = [(name, info) for name, info in rows if filter.lower() in name.lower()]
    if as_json:
        return put_json([{"id": name, "default": name == best, **asdict(info)} for name, info in rows])
    for one in reached:
        if one.trouble and one.configured:
            sys.stderr.write(f"sylph: {one.name} at {one.url}: {flat(one.trouble.message, 200)}\n")
    if not rows and not filter:
        raise NoModel("There is no model to think with.", next=["sylph doctor", "sylph tour"])
    table = [[f"{'*' if name == best else ' '} {flat(name, 60)}", *_known(info)] for name, info in rows]
    if not table:
        put(f"No model has {filter!r} in its name.")
        return 0
    put_table([["  MODEL", "WINDOW", "IN", "OUT"], *table], drop=(2, 3, 1))
    return 0


async def _look(app: App) -> tuple[list[Reached], str]:
    reached = await reach(app, seconds=5.0)
    try:
        best = await app.choose()
    except NoModel:
        best = ""
    return reached, best


def _known(info: ModelInfo) -> list[str]:
    prices = [
        f"{money(price)}/M" if price else "free" if price == 0 else "-" for price in (info.price_in, info.price_out)
    ]
    return [f"{info.window:,}" if info.window else "-", *prices]
