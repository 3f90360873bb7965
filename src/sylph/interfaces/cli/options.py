"""Options that several commands share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from sylph.core.facts import Mode

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a task is to be done."""

    model: str = ""
    mode: Mode | None = None
    quiet: bool = False
    as_json: bool = False
    dry_run: bool = False
    cwd: Path | None = None
    session: str = ""


def work(command: Decorated) -> Decorated:
    """The options of everything that runs turns; the command gets them as one `Options`."""
    for option in reversed(_WORK):
        command = option(command)
    return command


_WORK = (
    click.option("-m", "--model", default="", metavar="PROVIDER/MODEL", help="The model to think with."),
    click.option("--mode", type=click.Choice(get_args(Mode)), default=None, help="What may be done without asking."),
    click.option("-q", "--quiet", is_flag=True, help="Only the answer and errors."),
    click.option("--json", "as_json", is_flag=True, help="One event per line on stdout."),
    click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing."),
    click.option(
        "-C",
        "--cwd",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=None,
        help="The folder to work in.",
    ),
    click.option("-s", "--session", default="", metavar="ID", help="Go on in this session (id, prefix or `last`)."),
)
