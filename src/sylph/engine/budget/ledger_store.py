"""The purse on the disk: sums made from the log, and what is put aside for calls under way, in all processes."""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from sylph.core import facts
from sylph.core.errors import StoreError
from sylph.core.facts.budget import BudgetAmount
from sylph.engine.budget import spending
from sylph.engine.budget.accounts import BudgetAccount, BudgetOwner, account_names
from sylph.engine.budget.spending import SpendingEntry
from sylph.engine.commands import processes
from sylph.engine.log import schema

FILE = "budget.db"
VERSION = 1
BUSY_SECONDS = 30.0

SCHEMA = """
create table if not exists session (
    id text primary key, root text not null, label text not null, mark integer not null
) without rowid;
create table if not exists total (
    scope text not null, name text not null, money integer not null, tokens integer not null,
    rounds integer not null, ms integer not null, primary key (scope, name)
) without rowid;
create table if not exists hold (
    id integer primary key autoincrement, session text not null, turn text not null, root text not null,
    label text not null, seq integer not null, role text not null, model text not null, ts integer not null,
    attempt integer not null, money integer, input integer not null, output integer not null,
    pid integer not null, started text not null, boot text not null
);
"""
ADD = """
insert into total values (?,?,?,?,?,?) on conflict (scope, name) do update set money = money + excluded.money,
tokens = tokens + excluded.tokens, rounds = rounds + excluded.rounds, ms = ms + excluded.ms
"""


AttemptOutcome = Literal["unsent", "told", "unknown"]
"""Never sent; sent, and the log tells how it ended; sent, and nobody knows."""


class _ResponseRecord(Struct):
    role: str = "main"
    retry_ms: int | None = None


class ProcessIdentity(NamedTuple):
    """A process, named for good: its number alone comes again."""

    pid: int = 0
    started: str = ""
    boot: str = ""


class Reservation(Struct, frozen=True, kw_only=True):
    """What is put aside for one attempt of one call."""

    id: int = 0
    who: BudgetOwner
    role: str
    model: str
    ts: int
    attempt: int
    money: int | None
    """None where the model's prices are not known, and no budget counts money."""
    input: int
    output: int
    pid: int = 0
    started: str = ""
    boot: str = ""

    @property
    def amount(self) -> BudgetAmount:
        return BudgetAmount(self.money or 0, self.input + self.output, 1)

    @property
    def owner_process(self) -> ProcessIdentity:
        """The process that made it."""
        return ProcessIdentity(self.pid, self.started, self.boot)


class AccountBalance(NamedTuple):
    """How an account stands: what was used, and what is put aside for calls that run or that nobody knows about."""

    used: BudgetAmount = BudgetAmount()
    running: BudgetAmount = BudgetAmount()
    lost: BudgetAmount = BudgetAmount()


class LedgerStore:
    """One connection. Whoever calls `begin` has all of it for himself until `commit`, among all processes."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.path, self._log = folder / FILE, log
        self._db = _open_database(self.path)
        self._reader: sqlite3.Connection | None = None
        self._durable: bool | None = None

    def close(self) -> None:
        self._db.close()
        if self._reader:
            self._reader.close()

    def begin(self, *, durable: bool) -> None:
        """`durable` means: when it is committed, it is on the disk."""
        if durable is not self._durable:
            self._db.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
            self._durable = durable
        self._db.execute("begin immediate")

    def commit(self) -> None:
        self._db.execute("commit")

    def rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("rollback")

    def query(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """A look at the log."""
        if self._reader is None:
            self._reader = schema.connect_readonly(self._log)
        return self._reader.execute(sql, values).fetchall()

    def catch_up(self, session: str = "") -> None:
        """Counts what the log has grown by since it was last looked at: of one session, or of all."""
        where, values = (" where id = ?", (session,)) if session else ("", ())
        known = {row[0]: row[1:] for row in self._db.execute(f"select * from session{where}", values)}
        for id, head in self.query(f"select id, cast(seq as integer) from session{where}", values):
            root, label, mark = known.get(id, ("", "", 0))
            if head > mark:
                self._fold_session(id, root, label, mark, head)

    def _fold_session(self, session: str, root: str, label: str, mark: int, head: int) -> None:
        part = spending.read_spending(self.query, session, mark, root=root, label=label)
        self._add_entries(part.root, part.label, (spend for spend in part.spends if spend.seq <= head))
        row = (session, part.root, part.label, head)
        self._db.execute("insert or replace into session values (?,?,?,?)", row)

    def _add_entries(self, root: str, label: str, spends: Iterable[SpendingEntry]) -> None:
        sums: dict[tuple[str, str], BudgetAmount] = {}
        for spend in spends:
            who = BudgetOwner(session=spend.session, turn=spend.turn, root=root, label=label)
            for key in account_names(who, spend.ts):
                sums[key] = sums.get(key, BudgetAmount()) + spend.amount
        rows = [(*key, sum.money, sum.tokens, sum.rounds, sum.ms) for key, sum in sums.items()]
        self._db.executemany(ADD, rows)

    def list_balances(
        self, accounts: Sequence[BudgetAccount], holds: Sequence[Reservation], dead: frozenset[int]
    ) -> list[AccountBalance]:
        """How each account stands; `dead` are those of the holds that nobody will settle by himself."""
        held: dict[tuple[str, str], tuple[BudgetAmount, BudgetAmount]] = {}
        for hold in holds:
            for key in account_names(hold.who, hold.ts):
                running, lost = held.get(key, (BudgetAmount(), BudgetAmount()))
                more = hold.amount
                held[key] = (running, lost + more) if hold.id in dead else (running + more, lost)
        return [
            AccountBalance(
                self.used_amount(each.scope, each.name),
                *held.get((each.scope, each.name), (BudgetAmount(), BudgetAmount())),
            )
            for each in accounts
        ]

    def used_amount(self, scope: str, name: str) -> BudgetAmount:
        row = self._db.execute(
            "select money, tokens, rounds, ms from total where scope = ? and name = ?", (scope, name)
        ).fetchone()
        return BudgetAmount(*row) if row else BudgetAmount()

    def list_reservations(self, session: str = "") -> list[Reservation]:
        where, values = (" where session = ?", (session,)) if session else ("", ())
        return [
            _reservation_from_row(row) for row in self._db.execute(f"select * from hold{where} order by id", values)
        ]

    def add_reservation(self, hold: Reservation) -> int:
        who = hold.who
        values = (
            *(who.session, who.turn, who.root, who.label, who.seq, hold.role, hold.model, hold.ts, hold.attempt),
            *(hold.money, hold.input, hold.output, hold.pid, hold.started, hold.boot),
        )
        marks = ",".join("?" * len(values))
        return self._db.execute(f"insert into hold values (null,{marks})", values).lastrowid or 0

    def drop_reservations(self, *ids: int) -> None:
        self._db.executemany("delete from hold where id = ?", [(id,) for id in ids])

    def attempt_outcome(self, hold: Reservation) -> AttemptOutcome:
        """What the log knows of a call that nobody is at any more."""
        rows = self.query(
            "select cast(type as text), cast(data as blob) from event where session = ? and seq > ? and type in"
            " ('model.requested', 'model.responded', 'model.failed', 'turn.started', 'turn.resumed') order by seq",
            (hold.who.session, hold.who.seq),
        )
        asked = ends = over = 0
        for type, data in rows:
            told = msgspec.json.decode(data, type=_ResponseRecord)
            if type.startswith("turn."):
                if asked:
                    # What comes now was not asked by the process that asked this; only how this ended may be told.
                    over = asked
                continue
            if told.role != hold.role:
                continue
            if type != facts.ModelRequested.wire:
                ends += 1 if asked == 1 else told.retry_ms is None and asked > 1
            elif over:
                break
            else:
                asked += 1
        if not asked:
            return "unsent"
        # Of several that ran side by side the log does not tell which is which: they are known when all of them are.
        return "told" if ends >= (hold.attempt if asked == 1 else asked) else "unknown"

    def reset_totals(self) -> None:
        """Forgets all sums: they are made anew from the log. What is put aside stays."""
        self._db.execute("delete from total")
        self._db.execute("delete from session")


def _reservation_from_row(row: Sequence[Any]) -> Reservation:
    id, session, turn, root, label, seq, role, model, ts, attempt, money, input, output, pid, started, boot = row
    who = BudgetOwner(session=session, turn=turn, root=root, label=label, seq=seq)
    return Reservation(
        id=id, who=who, role=role, model=model, ts=ts, attempt=attempt, money=money, input=input, output=output,
        pid=pid, started=started, boot=boot,
    )  # fmt: skip


def _open_database(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600, exist_ok=True)
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        (version,) = db.execute("pragma user_version").fetchone()
        if version > VERSION:
            db.close()
            raise _newer_file_error(path)
        db.execute("pragma journal_mode = wal")
        if version < VERSION:
            db.executescript(SCHEMA)
            db.execute(f"pragma user_version = {VERSION}")
    except (OSError, sqlite3.Error) as error:
        raise unusable_file_error(path, error) from error
    return db


def _newer_file_error(path: Path) -> StoreError:
    return StoreError(
        f"{path} was written by a newer Sylph.",
        kind="budget_newer",
        details={"path": path},
        next=["Update Sylph, or point SYLPH_DATA at another folder."],
    )


def unusable_file_error(path: Path, error: Exception) -> StoreError:
    """Without its purse Sylph cannot know what may be spent, and so spends nothing."""
    return StoreError(
        f"The record of what was spent, {path}, cannot be used: {error}.",
        kind="budget_store",
        details={"path": path, "cause": error},
        next=["sylph doctor  makes it anew from the log, if it is damaged", f"Check that {path.parent} is writable."],
    )


class ProcessTable:
    """Who is who among the processes of this machine."""

    def own_identity(self) -> ProcessIdentity:
        """This process, named for good."""
        return _identify_process(os.getpid())

    def is_alive(self, process: ProcessIdentity) -> bool:
        if process.boot != self.own_identity().boot:
            return False
        if process.started:
            return processes.start_time(process.pid) == process.started
        try:
            os.kill(process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


@cache
def _identify_process(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid, processes.start_time(pid), processes.boot_id())
