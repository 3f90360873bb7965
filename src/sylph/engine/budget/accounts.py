"""Which budgets a call draws on: its turn, its session and its tree, its label, the day and the month."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sylph.core.budget import Budget, Caps, Scope
from sylph.engine.budget.spending import day
from sylph.engine.summary import Summary


class Payer(Struct, frozen=True, kw_only=True):
    """For whom a model is asked."""

    session: str
    turn: str = ""
    root: str = ""
    label: str = ""
    seq: int = 0
    """How far the session's log had come."""
    money: int | None = None
    """The session's own cap in micro-dollars, where the person gave it one."""
    warned: frozenset[str] = frozenset()
    """What the session's log has already warned of."""


def payer(summary: Summary) -> Payer:
    return Payer(
        session=summary.id,
        turn=summary.open_turn,
        root=summary.root or summary.id,
        label=summary.label,
        seq=summary.seq,
        money=summary.budget,
        warned=frozenset(summary.warned),
    )


class Account(NamedTuple):
    """One budget that a call draws on."""

    scope: Scope
    name: str
    caps: Caps


def names(who: Payer, ts: int) -> Iterator[tuple[Scope, str]]:
    """Every account that something counts for, whether it has a cap or not."""
    date = day(ts)
    yield "turn", f"{who.session}.{who.turn}"
    yield "session", who.session
    yield "tree", who.root or who.session
    yield "day", date
    yield "month", date[:7]
    if who.label:
        yield "label", f"{who.label} {date}"
        yield "label", f"{who.label} {date[:7]}"


def accounts(budget: Budget, who: Payer, ts: int) -> list[Account]:
    """The accounts with a cap, the narrowest first."""
    return [Account(scope, name, caps) for scope, name in names(who, ts) if (caps := _caps(budget, who, scope, name))]


def common(budget: Budget, ts: int) -> list[Account]:
    """The accounts with a cap that do not belong to one session."""
    who = [Payer(session="", label=label) for label in ("", *budget.labels)]
    found = [each for one in who for each in accounts(budget, one, ts) if each.scope in ("day", "month", "label")]
    return list(dict.fromkeys(found))


def _caps(budget: Budget, who: Payer, scope: Scope, name: str) -> Caps:
    match scope:
        case "turn":
            # The time of a turn is kept by its own clock, which stands still while a person is waited for.
            return replace(budget.turn, seconds=None) if who.turn else Caps()
        case "session":
            return budget.session if who.money is None else replace(budget.session, money=who.money)
        case "tree":
            return budget.tree
        case "day":
            return budget.day
        case "month":
            return budget.month
        case "label":
            allowed = budget.labels.get(who.label)
            daily = name.rpartition(" ")[2].count("-") == 2
            return Caps() if allowed is None else allowed.day if daily else allowed.month
