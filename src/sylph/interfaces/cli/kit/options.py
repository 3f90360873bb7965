"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from msgspec import Struct

from sylph.core.commands import SetBudget
from sylph.core.facts.budget import MICROS_PER_DOLLAR
from sylph.core.permission.types import Mode

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
as_json = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")


class TaskOptions(Struct, frozen=True, kw_only=True):
    """How a task is to be done."""

    model: str = ""
    mode: Mode | None = None
    quiet: bool = False
    as_json: bool = False
    dry_run: bool = False
    cwd: Path | None = None
    session: str = ""
    key: str | None = None
    sandbox: str | None = None
    roles: tuple[str, ...] = ()
    budget: SetBudget | None = None
    label: str | None = None
    attach: tuple[str, ...] = ()

    @property
    def sandboxed(self) -> bool | None:
        """Whether commands are to be confined; None where nothing was said."""
        return self.sandbox == "on" if self.sandbox else None


class DollarsParam(click.ParamType[SetBudget]):
    """An amount of money, or `none`."""

    name = "DOLLARS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SetBudget:
        return value if isinstance(value, SetBudget) else self._parse_amount(str(value), param, ctx)

    def _parse_amount(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> SetBudget:
        if text.lower() in ("none", "off"):
            return SetBudget(money=None)
        try:
            micros = round(float(text.removeprefix("$")) * MICROS_PER_DOLLAR)
        except (ValueError, OverflowError):
            micros = 0
        if micros <= 0:
            self.fail(f"{text!r} is no amount of dollars: give a number like 0.50, or `none`.", param, ctx)
        return SetBudget(money=micros)


_TASK_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "model": click.option("-m", "--model", default="", metavar="PROVIDER/MODEL", help="The model to think with."),
    "mode": click.option("--mode", type=click.Choice(get_args(Mode)), help="What may be done without asking."),
    "quiet": click.option("-q", "--quiet", is_flag=True, help="Only the answer and errors."),
    "as_json": click.option("--json", "as_json", is_flag=True, help="One event per line on stdout."),
    "dry_run": click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing."),
    "cwd": click.option("-C", "--cwd", type=_FOLDER, help="The folder to work in."),
    "sandbox": click.option(
        "--sandbox", type=click.Choice(("on", "off")), help="Confine commands (the default), or do not."
    ),
    "roles": click.option(
        "--role",
        "roles",
        multiple=True,
        metavar="ROLE=MODEL",
        help="The model of a role here: sylph roles.",
    ),
    "budget": click.option(
        "--budget",
        type=DollarsParam(),
        help="The most this session may cost, in dollars; `none` for no cap of its own.",
    ),
    "label": click.option("--label", metavar="NAME", help="Sessions of one label share a budget."),
    "attach": click.option(
        "-a", "--attach", multiple=True, metavar="FILE", help="A picture or a PDF for the model to look at."
    ),
    "session": click.option("-s", "--session", default="", metavar="ID", help="Go on in this session."),
    "key": click.option("--key", metavar="KEY", help="Sent again with the same key it is the same turn, not another."),
}


def task_options(*without: str) -> Callable[[Decorated], Decorated]:
    """The options of everything that runs turns; the command makes one `Options` of them."""

    def decorate(command: Decorated) -> Decorated:
        for name, option in reversed(_TASK_OPTIONS.items()):
            command = command if name in without else option(command)
        return command

    return decorate


def option_help_records() -> list[tuple[str, str]]:
    """The options of a task with their help."""
    command = task_options()(click.Command("run", params=[]))
    context = click.Context(command)
    return [record for option in reversed(command.params) if (record := option.get_help_record(context))]
