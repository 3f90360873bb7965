"""Holds the purse against the log, and makes it anew where the two differ: the log is the truth."""

import contextlib
import sqlite3
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import StoreError
from sylph.core.facts.budget import UNKNOWN_MODEL_TOKENS, BudgetAmount
from sylph.engine.budget import spending
from sylph.engine.budget.accounts import BudgetOwner
from sylph.engine.budget.ledger_store import FILE, LedgerStore, Reservation
from sylph.engine.budget.worst_case import DENSE_BYTES

UNANSWERED = """
select event.session, event.seq, event.turn, event.ts, cast(event.data as blob) from event
where event.type = 'model.requested' and not exists (
    select 1 from event as after where after.session = event.session and after.seq > event.seq
    and after.type in ('model.requested', 'model.responded', 'model.failed')
)
"""


class LedgerAudit(Struct, frozen=True, kw_only=True):
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


def audit_ledger(folder: Path, log: Path) -> LedgerAudit | None:
    """None where there is no purse yet. What differs is mended; a damaged file is put aside."""
    if not (folder / FILE).exists():
        return None
    try:
        return _compare_with_log(folder, log)
    except (StoreError, sqlite3.DatabaseError) as error:
        if isinstance(error, StoreError) and error.trouble.kind == "budget_newer":
            raise
        _quarantine_file(folder)
        _rebuild_ledger(folder, log, lost=True)
        return LedgerAudit(damaged=str(error))


def _compare_with_log(folder: Path, log: Path) -> LedgerAudit:
    with contextlib.closing(LedgerStore(folder, log)) as store:
        store.begin(durable=False)
        try:
            store.catch_up()
            ids = [id for (id,) in store.query("select id from session", ())]
            differ = tuple(id for id in ids if store.used_amount("session", id) != _spent_amount(store, id))
            if differ:
                store.reset_totals()
                store.catch_up()
            store.commit()
        except BaseException:
            store.rollback()
            raise
    return LedgerAudit(sessions=len(ids), differ=differ)


def _spent_amount(store: LedgerStore, session: str) -> BudgetAmount:
    return sum((spend.amount for spend in spending.read_spending(store.query, session).spends), BudgetAmount())


def _quarantine_file(folder: Path) -> None:
    for path in folder.glob(f"{FILE}*"):
        if path.name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
            path.replace(path.with_name(f"damaged-{path.name}"))


def _rebuild_ledger(folder: Path, log: Path, *, lost: bool) -> None:
    with contextlib.closing(LedgerStore(folder, log)) as store:
        store.begin(durable=True)
        try:
            store.catch_up()
            for hold in _unanswered_requests(store) if lost else ():
                store.add_reservation(hold)
            store.commit()
        except BaseException:
            store.rollback()
            raise


def _unanswered_requests(store: LedgerStore) -> Iterator[Reservation]:
    """What was asked for and never answered was put aside in the file that is lost: it is put aside again."""
    for session, seq, turn, ts, data in store.query(UNANSWERED, ()):
        asked = msgspec.json.decode(data, type=_Requested)
        part = spending.read_spending(store.query, session)
        who = BudgetOwner(session=session, turn=turn, root=part.root, label=part.label, seq=seq - 1)
        input, output = ceil(asked.bytes / DENSE_BYTES), asked.answer or UNKNOWN_MODEL_TOKENS
        yield Reservation(
            who=who, role=asked.role, model=asked.model, ts=ts, attempt=1, money=asked.reserved, input=input,
            output=output,
        )  # fmt: skip
