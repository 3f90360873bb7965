"""Holds the purse against the log, and makes it anew where the two differ: the log is the truth."""

import contextlib
import sqlite3
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.budget import UNKNOWN_ANSWER, Amount
from sylph.core.errors import StoreError
from sylph.engine.budget import spending
from sylph.engine.budget.accounts import Payer
from sylph.engine.budget.store import FILE, Hold, Store
from sylph.engine.budget.worst import DENSE

OPEN = """
select event.session, event.seq, event.turn, event.ts, cast(event.data as blob) from event
where event.type = 'model.requested' and not exists (
    select 1 from event as after where after.session = event.session and after.seq > event.seq
    and after.type in ('model.requested', 'model.responded', 'model.failed')
)
"""


class Audit(Struct, frozen=True, kw_only=True):
    """How many sessions were looked at, which of them did not agree with the log, and what was wrong with the file."""

    sessions: int = 0
    differ: tuple[str, ...] = ()
    damaged: str = ""


class _Requested(Struct):
    model: str = ""
    role: str = "main"
    bytes: int = 0
    reserved: int | None = None
    answer: int | None = None


def audit(folder: Path, log: Path) -> Audit | None:
    """None where there is no purse yet. What differs is mended; a damaged file is put aside."""
    if not (folder / FILE).exists():
        return None
    try:
        return _compare(folder, log)
    except (StoreError, sqlite3.DatabaseError) as error:
        if isinstance(error, StoreError) and error.trouble.kind == "budget_newer":
            raise
        _put_aside(folder)
        _mend(folder, log, lost=True)
        return Audit(damaged=str(error))


def _compare(folder: Path, log: Path) -> Audit:
    with contextlib.closing(Store(folder, log)) as store:
        store.begin(durable=False)
        try:
            store.catch_up()
            ids = [id for (id,) in store.query("select id from session", ())]
            differ = tuple(id for id in ids if store.used("session", id) != _spent(store, id))
            if differ:
                store.reset()
                store.catch_up()
            store.commit()
        except BaseException:
            store.rollback()
            raise
    return Audit(sessions=len(ids), differ=differ)


def _spent(store: Store, session: str) -> Amount:
    return sum((spend.amount for spend in spending.read(store.query, session).spends), Amount())


def _put_aside(folder: Path) -> None:
    for path in folder.glob(f"{FILE}*"):
        if path.name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
            path.replace(path.with_name(f"damaged-{path.name}"))


def _mend(folder: Path, log: Path, *, lost: bool) -> None:
    with contextlib.closing(Store(folder, log)) as store:
        store.begin(durable=True)
        try:
            store.catch_up()
            for hold in _unanswered(store) if lost else ():
                store.put(hold)
            store.commit()
        except BaseException:
            store.rollback()
            raise


def _unanswered(store: Store) -> Iterator[Hold]:
    """What was asked for and never answered was put aside in the file that is lost: it is put aside again."""
    for session, seq, turn, ts, data in store.query(OPEN, ()):
        asked = msgspec.json.decode(data, type=_Requested)
        part = spending.read(store.query, session)
        who = Payer(session=session, turn=turn, root=part.root, label=part.label, seq=seq - 1)
        input, output = ceil(asked.bytes / DENSE), asked.answer or UNKNOWN_ANSWER
        yield Hold(
            who=who, role=asked.role, model=asked.model, ts=ts, attempt=1, money=asked.reserved, input=input,
            output=output,
        )  # fmt: skip
