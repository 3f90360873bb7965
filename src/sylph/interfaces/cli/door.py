"""What every command holds: the configuration, and the way to the runtime."""

import asyncio
import getpass
import logging
import os
import shutil
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from sylph.config import Config, load, locate
from sylph.core.errors import UserError
from sylph.interfaces.cli.table import fitted
from sylph.interfaces.own.place import SOCKET

if TYPE_CHECKING:
    from sylph.app import App

T = TypeVar("T")


class Door:
    """Made once by `main`, given to each command. Where a server of this home runs, commands work through it."""

    def __init__(self, *, alone: bool = False) -> None:
        self._alone = alone or os.environ.get("SYLPH_ALONE", "") not in ("", "0")

    @cached_property
    def config(self) -> Config:
        """What was configured. Raises UserError where that is wrong."""
        return load(os.environ)

    @property
    def place(self) -> Config:
        """Where things lie, also while the config file is wrong."""
        return locate(os.environ)

    def run(self, work: Callable[["App"], Awaitable[T]], *, alone: bool = False) -> T:
        """Runs `work` with the built program, and closes it afterwards. What must be done here is done `alone`."""
        return _run(self.config, work, alone=alone or self._alone)

    def look(self, work: Callable[["App"], Awaitable[T]]) -> T:
        """The same for what only looks at the log: a wrong configuration does not stand in its way."""
        try:
            config = self.config
        except UserError as error:
            sys.stderr.write(f"sylph: {error} (not used here)\n")
            config = self.place
        return _run(config, work, alone=self._alone, looks=True)


def _run(config: Config, work: Callable[["App"], Awaitable[T]], *, alone: bool, looks: bool = False) -> T:
    logging.basicConfig(level=config.settings.log_level.upper())
    return asyncio.run(_built(config, work, alone=alone, looks=looks))


async def _built(config: Config, work: Callable[["App"], Awaitable[T]], *, alone: bool, looks: bool) -> T:
    from sylph.engine.redact.discreet import Discreet

    async with await _program(config, alone=alone, looks=looks) as app:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(Discreet(app.runtime.veil))
        return await work(app)


async def _program(config: Config, *, alone: bool, looks: bool) -> "App":
    """The program of the server that runs, or one of our own."""
    if not alone and (config.data / SOCKET).exists():
        from sylph.interfaces.own.find import distant

        if app := await distant(config, ask_passphrase, looks=looks):
            return app
    from sylph.app import build

    return build(config, ask_passphrase)


def ask_passphrase() -> str:
    """The passphrase of the credentials, from the person at the terminal; empty where there is none."""
    # Nobody can be asked from beside the loop: it might be showing something else, and could not be interrupted.
    if not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
        return ""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY))
        return getpass.getpass("The passphrase of your credentials (not shown): ")
    except (OSError, EOFError):
        return ""


def put_json(value: object) -> int:
    """One JSON document on stdout."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n")
    return 0


def put(text: str) -> None:
    """Text for stdout."""
    sys.stdout.write(text + "\n")


def done(said: str, session: str, *, as_json: bool, **more: object) -> int:
    """What was done to a session, in words or as JSON."""
    if as_json:
        return put_json({"session": session, **more})
    put(said)
    return 0


def put_table(rows: Sequence[Sequence[str]], *, drop: Sequence[int] = ()) -> None:
    """A table on stdout. In a terminal that is too narrow the columns `drop` are left out, in that order."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    put("\n".join(fitted(rows, room, drop)))


def write_new(path: Path, rows: list[bytes]) -> None:
    """A new file, readable by its owner only; one that is there is not overwritten."""
    try:
        with path.open("xb") as file:
            path.chmod(0o600)
            file.writelines(rows)
    except FileExistsError as error:
        raise UserError(f"{path} is there already.", next=["give another name, or remove it first"]) from error
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.", kind="failed") from error
