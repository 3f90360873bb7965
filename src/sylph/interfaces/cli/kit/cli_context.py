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

from sylph.config import Config, load_config, locate_config
from sylph.core.errors import UserError
from sylph.interfaces.cli.kit.table import fit_rows
from sylph.interfaces.local_socket.unix_socket import SOCKET_NAME

if TYPE_CHECKING:
    from sylph.app import App

T = TypeVar("T")


class CliContext:
    """Made once by `main`, given to each command. Where a server of this home runs, commands work through it."""

    def __init__(self, *, alone: bool = False) -> None:
        self._alone = alone or os.environ.get("SYLPH_ALONE", "") not in ("", "0")

    @cached_property
    def config(self) -> Config:
        """What was configured. Raises UserError where that is wrong."""
        return load_config(os.environ)

    @property
    def base_config(self) -> Config:
        """Where things lie, also while the config file is wrong."""
        return locate_config(os.environ)

    def run(self, work: Callable[["App"], Awaitable[T]], *, alone: bool = False) -> T:
        """Runs `work` with the built program, and closes it afterwards. What must be done here is done `alone`."""
        return _run_app(self.config, work, alone=alone or self._alone)

    def run_read_only(self, work: Callable[["App"], Awaitable[T]]) -> T:
        """The same for what only looks at the log: a wrong configuration does not stand in its way."""
        try:
            config = self.config
        except UserError as error:
            sys.stderr.write(f"sylph: {error} (not used here)\n")
            config = self.base_config
        return _run_app(config, work, alone=self._alone, looks=True)


def _run_app(config: Config, work: Callable[["App"], Awaitable[T]], *, alone: bool, looks: bool = False) -> T:
    logging.basicConfig(level=config.settings.log_level.upper())
    return asyncio.run(_run_with_app(config, work, alone=alone, looks=looks))


async def _run_with_app(config: Config, work: Callable[["App"], Awaitable[T]], *, alone: bool, looks: bool) -> T:
    from sylph.engine.redact.log_formatter import RedactingFormatter

    async with await _open_app(config, alone=alone, looks=looks) as app:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(RedactingFormatter(app.runtime.redactor))
        return await work(app)


async def _open_app(config: Config, *, alone: bool, looks: bool) -> "App":
    """The program of the server that runs, or one of our own."""
    if not alone and (config.data / SOCKET_NAME).exists():
        from sylph.interfaces.local_socket.discovery import open_server_app

        if app := await open_server_app(config, ask_passphrase, looks=looks):
            return app
    from sylph.app import build_app

    return build_app(config, ask_passphrase)


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


def print_json(value: object) -> int:
    """One JSON document on stdout."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n")
    return 0


def print_text(text: str) -> None:
    """Text for stdout."""
    sys.stdout.write(text + "\n")


def print_result(said: str, session: str, *, as_json: bool, **more: object) -> int:
    """What was done to a session, in words or as JSON."""
    if as_json:
        return print_json({"session": session, **more})
    print_text(said)
    return 0


def print_table(rows: Sequence[Sequence[str]], *, drop: Sequence[int] = ()) -> None:
    """A table on stdout. In a terminal that is too narrow the columns `drop` are left out, in that order."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    print_text("\n".join(fit_rows(rows, room, drop)))


def write_new_file(path: Path, rows: list[bytes]) -> None:
    """A new file, readable by its owner only; one that is there is not overwritten."""
    try:
        with path.open("xb") as file:
            path.chmod(0o600)
            file.writelines(rows)
    except FileExistsError as error:
        raise UserError(f"{path} is there already.", next=["give another name, or remove it first"]) from error
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.", kind="failed") from error
