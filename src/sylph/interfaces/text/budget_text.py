"""How budgets stand, in words. Pure."""

from collections.abc import Iterator, Sequence

from sylph.core.facts.budget import (
    Budget,
    BudgetAmount,
    BudgetUnit,
    describe_scope,
    format_amount,
    format_dollars,
    format_share,
)
from sylph.engine.budget.accounts import BudgetAccount, BudgetOwner, capped_accounts
from sylph.engine.budget.headroom import capped_measures
from sylph.engine.budget.ledger_store import AccountBalance
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.text.render import format_money

# A budget of which so much is used is shown as a warning.
WARNING_PERCENT = 80


def session_spending(summary: SessionState, budget: Budget) -> str:
    """What a session has cost, and of how much where that is limited: `$0.12 of $0.50`."""
    who = BudgetOwner(session=summary.id, money=summary.budget)
    caps = next((each.caps for each in capped_accounts(budget, who, 0) if each.scope == "session"), None)
    if caps and caps.money is not None:
        return f"{format_dollars(summary.cost or 0)} of {format_dollars(caps.money)}"
    if caps and caps.tokens is not None:
        used = summary.usage.input + summary.usage.output
        return " · ".join(filter(None, [f"{used:,} of {caps.tokens:,} tokens", format_money(summary.cost or None)]))
    return format_money(summary.cost or None)


def budget_rows(stands: Sequence[tuple[BudgetAccount, AccountBalance]]) -> Iterator[dict[str, object]]:
    """Each budget as data. Money is in micro-dollars; `held` is for calls under way, `unknown` for those of dead
    processes."""
    for account, stand in stands:
        for what, used, cap in capped_measures(account, stand.used):
            held, lost = _amount_of(stand.running, what), _amount_of(stand.lost, what)
            yield {
                "scope": account.scope,
                "name": account.name,
                "what": what,
                "used": used,
                "held": held,
                "unknown": lost,
                "cap": cap,
                "percent": (used + lost) * 100 // cap,
            }


def budget_line(row: dict[str, object]) -> str:
    """`$0.12 of $5.00 today …`, with what else is put aside."""
    what: BudgetUnit = row["what"]  # pyright: ignore[reportAssignmentType] - as `rows` made it
    used, held, lost, cap = (int(str(row[name])) for name in ("used", "held", "unknown", "cap"))
    said = f"{format_share(what, used, cap)} ({row['percent']} %)"
    said += f", {format_amount(what, held)} put aside for calls under way" if held else ""
    said += f", {format_amount(what, lost)} for calls whose end nobody knows" if lost else ""
    return said


def budget_name(row: dict[str, object]) -> str:
    return describe_scope(row["scope"], str(row["name"]))  # pyright: ignore[reportArgumentType] - the same


def _amount_of(amount: BudgetAmount, what: BudgetUnit) -> int:
    return {"money": amount.money, "tokens": amount.tokens, "rounds": amount.rounds, "seconds": 0}[what]
