"""Long looks at the log, beside everything else: in a thread, over a connection of their own."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from sylph.engine.budget.spending import Query
from sylph.engine.schema import explain

T = TypeVar("T")


async def aside(store: Path, work: Callable[[Query], T]) -> T:
    """What `work` finds in the store. Nobody else waits for it. Raises StoreError."""
    return await asyncio.to_thread(_read, store, work)


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _read(store: Path, work: Callable[[Query], T]) -> T:
    try:
        with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as base:
            base.text_factory = _lenient
            return work(lambda sql, values: base.execute(sql, values).fetchall())
    except sqlite3.Error as error:
        raise explain(error, store) from error
