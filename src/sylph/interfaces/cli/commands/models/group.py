"""`sylph models`: what there is to think with."""

import sys
from pathlib import Path

import click
from msgspec.structs import asdict

from sylph.app import App
from sylph.core.errors import NoModel, UserError
from sylph.core.provider import ModelInfo
from sylph.core.text.suggestion import suggest_word
from sylph.interfaces.cli.commands.models.local_model import add, install, remove
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.reports.service_probe import ProbedService, probe_services
from sylph.interfaces.text.render import format_money, format_size, one_line
from sylph.providers.local.models import LocalModelInfo

CHAT_ONLY = "chat only"


class ModelsGroup(click.Group):
    """A group whose first word may also be a part of a model's name: then the models are listed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {*self.commands, *ctx.help_option_names}
        words = [word for word in args if not word.startswith("-")]
        if (
            len(words) > 1
            and args[0] == words[0]
            and args[0] not in known
            and (meant := suggest_word(args[0], self.commands))
        ):
            raise UserError(f"There is no command sylph models {args[0]!r}.{meant}", next=["sylph models --help"])
        return super().parse_args(ctx, args if args and args[0] in known else ["list", *args])


@click.group(cls=ModelsGroup)
def command() -> None:
    """List the models that can be used, and bring models to this machine.

    `sylph models` alone is `sylph models list`.
    """


@command.command("list")
@click.argument("filter", default="")
@json_option
@click.pass_obj
def list_models(cli: CliContext, filter: str, *, as_json: bool) -> int:
    """List the models that can be used now. FILTER is a part of the name."""
    reached, best = cli.run(_probe_models)
    rows = [(f"{one.name}/{info.name}", one, info) for one in reached for info in one.models]
    rows = [(name, one, info) for name, one, info in rows if filter.lower() in name.lower()]
    if as_json:
        return print_json([_model_facts(name, one, info, default=name == best) for name, one, info in rows])
    for one in reached:
        if one.trouble and one.configured:
            sys.stderr.write(f"sylph: {one.name} at {one.url}: {one_line(one.trouble.message, 200)}\n")
    if not rows and not filter:
        raise NoModel(
            "There is no model to think with.", next=["sylph doctor", "sylph models install small", "sylph tour"]
        )
    table = [
        [f"{'*' if name == best else ' '} {one_line(name, 60)}", *_model_columns(info), _model_origin(one, info)]
        for name, one, info in rows
    ]
    if not table:
        print_text(f"No model has {filter!r} in its name.{suggest_word(filter, command.commands)}")
        return 0
    print_table([["  MODEL", "WINDOW", "IN", "OUT", "TAKES", "FROM"], *table], drop=(5, 2, 3, 4, 1))
    for one in reached:
        if one.key_from and any(each is one for _, each, _ in rows):
            sys.stderr.write(f"{one.name}: {one.key_from}\n")
        if one.elsewhere:
            sys.stderr.write(f"{one.name}: no key is sent to {one.url}, for {one.elsewhere}\n")
    return 0


command.add_command(install)
command.add_command(add)
command.add_command(remove)


def _model_facts(name: str, one: ProbedService, info: ModelInfo, *, default: bool) -> dict[str, object]:
    return {"id": name, "default": default, **asdict(info), "from": one.url, "key_from": one.key_from}


async def _probe_models(app: App) -> tuple[list[ProbedService], str]:
    reached = await probe_services(app, seconds=5.0)
    try:
        best = await app.choose_model()
    except UserError:
        best = ""
    return reached, best


def _model_columns(info: ModelInfo) -> list[str]:
    prices = [
        f"{format_money(price)}/M" if price else "free" if price == 0 else "-"
        for price in (info.price_in, info.price_out)
    ]
    return [f"{info.window:,}" if info.window else "-", *prices, _input_kinds(info)]


def _input_kinds(info: ModelInfo) -> str:
    """What it can be given besides text, as far as that is known."""
    if info.calls is False:
        return CHAT_ONLY
    return ", ".join(["tools"] * bool(info.calls) + ["images"] * bool(info.sees)) or "-"


def _model_origin(one: ProbedService, info: ModelInfo) -> str:
    if not isinstance(info, LocalModelInfo):
        return one.url
    return f"{one_line(Path(info.path).name, 60)}, {format_size(info.size) if info.size else 'gone'}"
