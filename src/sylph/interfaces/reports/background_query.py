"""Long looks at the log, beside everything else: in a thread, over a connection of their own."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from sylph.engine.budget.spending import LogQuery
from sylph.engine.log.schema import explain_error

T = TypeVar("T")


async def query_in_background(store: Path, work: Callable[[LogQuery], T]) -> T:
    """What `work` finds in the store. Nobody else waits for it. Raises StoreError."""
    return await asyncio.to_thread(_run_query, store, work)


def _decode_lenient(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _run_query(store: Path, work: Callable[[LogQuery], T]) -> T:
    try:
        with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as base:
            base.text_factory = _decode_lenient
            return work(lambda sql, values: base.execute(sql, values).fetchall())
    except sqlite3.Error as error:
        raise explain_error(error, store) from error
