"""What the server writes down: one JSON object a line, without secrets, in a file that only its owner can read."""

import logging
import os
import sys
from datetime import UTC, datetime
from io import FileIO, TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import msgspec

from sylph.config import Config
from sylph.engine.redact.redactor import NoRedaction
from sylph.reload import SERVER_LOG_HANDLER, set_log_levels

FIELDS = "fields"


def log_file_path(config: Config) -> Path:
    return config.data / "logs" / "server.log"


class ServerLogFormatter(logging.Formatter):
    """A record as one line. `extra={"fields": …}` adds to it; what is an object becomes text."""

    def __init__(self, redactor: NoRedaction) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **record.__dict__.get(FIELDS, {}),
        }
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        clean = {
            key: self._redactor.redact_text(value) if isinstance(value, str) else value for key, value in told.items()
        }
        return msgspec.json.encode(clean, enc_hook=str).decode()


class PrivateLogFile(RotatingFileHandler):
    """A file that nobody else can read."""

    def _open(self) -> TextIOWrapper:
        return TextIOWrapper(FileIO(self.baseFilename, "a", opener=_open_private), encoding="utf-8", write_through=True)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def start_server_log(config: Config, redactor: NoRedaction) -> logging.Handler | None:
    """Has everything that is logged written down from now on; None where it is to be written nowhere."""
    told = config.settings.logs
    if told.to == "off":
        return None
    handler: logging.Handler
    if told.to == "file":
        path = log_file_path(config)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = PrivateLogFile(path, maxBytes=int(told.max_mb * 1_000_000), backupCount=told.keep, encoding="utf-8")
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.set_name(SERVER_LOG_HANDLER)
    handler.setFormatter(ServerLogFormatter(redactor))
    root = logging.getLogger()
    if told.to == "stderr":
        # One form on one stream.
        for other in list(root.handlers):
            root.removeHandler(other)
    root.addHandler(handler)
    set_log_levels(config)
    return handler


def stop_server_log(handler: logging.Handler | None) -> None:
    if handler:
        logging.getLogger().removeHandler(handler)
        handler.close()


def read_last_lines(file: Path, lines: int) -> list[bytes]:
    """The last lines of a file; where it was begun anew lately, also of the one before."""
    found: list[bytes] = []
    for path in (file, file.with_name(f"{file.name}.1")):
        if len(found) < lines:
            found = [*_read_file_end(path, lines - len(found)), *found]
    return found


def _read_file_end(path: Path, lines: int, chunk: int = 65_536) -> list[bytes]:
    try:
        with path.open("rb") as file:
            end = at = file.seek(0, os.SEEK_END)
            data = b""
            while at > 0 and data.count(b"\n") <= lines:
                at = max(at - chunk, 0)
                file.seek(at)
                data = file.read(end - at)
    except OSError:
        return []
    return data.splitlines()[-lines:]
