"""Which budgets a call draws on: its turn, its session and its tree, its label, the day and the month."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sylph.core.facts.budget import Budget, BudgetCaps, BudgetScope
from sylph.engine.budget.spending import local_date
from sylph.engine.folds.session_state import SessionState


class BudgetOwner(Struct, frozen=True, kw_only=True):
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


def budget_owner_of(summary: SessionState) -> BudgetOwner:
    return BudgetOwner(
        session=summary.id,
        turn=summary.open_turn,
        root=summary.root or summary.id,
        label=summary.label,
        seq=summary.seq,
        money=summary.budget,
        warned=frozenset(summary.warned),
    )


class BudgetAccount(NamedTuple):
    """One budget that a call draws on."""

    scope: BudgetScope
    name: str
    caps: BudgetCaps


def account_names(who: BudgetOwner, ts: int) -> Iterator[tuple[BudgetScope, str]]:
    """Every account that something counts for, whether it has a cap or not."""
    date = local_date(ts)
    yield "turn", f"{who.session}.{who.turn}"
    yield "session", who.session
    yield "tree", who.root or who.session
    yield "day", date
    yield "month", date[:7]
    if who.label:
        yield "label", f"{who.label} {date}"
        yield "label", f"{who.label} {date[:7]}"


def capped_accounts(budget: Budget, who: BudgetOwner, ts: int) -> list[BudgetAccount]:
    """The accounts with a cap, the narrowest first."""
    return [
        BudgetAccount(scope, name, caps)
        for scope, name in account_names(who, ts)
        if (caps := _caps_for(budget, who, scope, name))
    ]


def shared_accounts(budget: Budget, ts: int) -> list[BudgetAccount]:
    """The accounts with a cap that do not belong to one session."""
    who = [BudgetOwner(session="", label=label) for label in ("", *budget.labels)]
    found = [
        each for one in who for each in capped_accounts(budget, one, ts) if each.scope in ("day", "month", "label")
    ]
    return list(dict.fromkeys(found))


def _caps_for(budget: Budget, who: BudgetOwner, scope: BudgetScope, name: str) -> BudgetCaps:
    match scope:
        case "turn":
            # The time of a turn is kept by its own clock, which stands still while a person is waited for.
            return replace(budget.turn, seconds=None) if who.turn else BudgetCaps()
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
            return BudgetCaps() if allowed is None else allowed.day if daily else allowed.month
