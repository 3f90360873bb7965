"""How budgets stand, in words. Pure."""

from collections.abc import Iterator, Sequence

from sylph.core.budget import Amount, Budget, What, dollars, owner, share, told
from sylph.engine.budget.accounts import Account, Payer, accounts
from sylph.engine.budget.room import measures
from sylph.engine.budget.store import Stand
from sylph.engine.summary import Summary
from sylph.interfaces.render import money

# A budget of which so much is used is shown as a warning.
NEAR = 80


def used_up(summary: Summary, budget: Budget) -> str:
    """What a session has cost, and of how much where that is limited: `$0.12 of $0.50`."""
    who = Payer(session=summary.id, money=summary.budget)
    caps = next((each.caps for each in accounts(budget, who, 0) if each.scope == "session"), None)
    if caps and caps.money is not None:
        return f"{dollars(summary.cost or 0)} of {dollars(caps.money)}"
    if caps and caps.tokens is not None:
        used = summary.usage.input + summary.usage.output
        return " · ".join(filter(None, [f"{used:,} of {caps.tokens:,} tokens", money(summary.cost or None)]))
    return money(summary.cost or None)


def rows(stands: Sequence[tuple[Account, Stand]]) -> Iterator[dict[str, object]]:
    """Each budget as data. Money is in micro-dollars; `held` is for calls under way, `unknown` for those of dead
    processes."""
    for account, stand in stands:
        for what, used, cap in measures(account, stand.used):
            held, lost = _of(stand.running, what), _of(stand.lost, what)
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


def line_of(row: dict[str, object]) -> str:
    """`$0.12 of $5.00 today …`, with what else is put aside."""
    what: What = row["what"]  # pyright: ignore[reportAssignmentType] - as `rows` made it
    used, held, lost, cap = (int(str(row[name])) for name in ("used", "held", "unknown", "cap"))
    said = f"{share(what, used, cap)} ({row['percent']} %)"
    said += f", {told(what, held)} put aside for calls under way" if held else ""
    said += f", {told(what, lost)} for calls whose end nobody knows" if lost else ""
    return said


def name_of(row: dict[str, object]) -> str:
    return owner(row["scope"], str(row["name"]))  # pyright: ignore[reportArgumentType] - the same


def _of(amount: Amount, what: What) -> int:
    return {"money": amount.money, "tokens": amount.tokens, "rounds": amount.rounds, "seconds": 0}[what]
