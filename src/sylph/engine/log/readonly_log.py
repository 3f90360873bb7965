"""The log of sessions that another process works on: looked at, never written."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from sylph.engine.log import schema
from sylph.engine.log.store import EventLog


class ReadOnlyLog(EventLog):
    """Opened when it is first looked into: most of what is done through another process needs nothing of it here."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, cast("sqlite3.Connection", None), None)
        self._opened = False

    @property
    def read_only(self) -> bool:
        """That nobody can write it is not so: somebody else does."""
        return False

    def query(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        if not self._opened:
            try:
                self._reader = schema.connect_readonly(self.path)
            except sqlite3.Error as error:
                raise schema.explain_error(error, self.path) from error
            self._opened = True
        return super().query(sql, values)

    def close(self) -> None:
        if self._opened:
            super().close()
