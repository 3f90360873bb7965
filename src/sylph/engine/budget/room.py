"""What a budget still affords: how long an answer can be, and which account leaves no more. Pure."""

from math import ceil
from typing import NamedTuple

from msgspec.structs import replace

from sylph.core.budget import Amount, BudgetExceeded, BudgetStopped, What
from sylph.core.errors import UserError
from sylph.core.events import Fact
from sylph.core.provider import ModelInfo
from sylph.engine.budget import worst
from sylph.engine.budget.accounts import Account
from sylph.engine.budget.store import Hold, Stand
from sylph.engine.budget.worst import Price


class Room(NamedTuple):
    """How long an answer can be for what is left, and what it is that leaves no more."""

    output: int
    stop: BudgetStopped


def room(
    found: list[Account], stands: list[Stand], hold: Hold, price: Price | None, least: int, *, running: bool = True
) -> Room:
    """What the tightest account affords; with `running`, calls under way are taken to need all that they put aside.

    An answer of fewer tokens than `least` is not worth a call.
    """
    tightest: Room | None = None
    for account, stand in zip(found, stands, strict=True):
        held = stand.lost + stand.running if running else stand.lost
        for what, used, cap in measures(account, stand.used):
            taken = {"money": held.money, "tokens": held.tokens, "rounds": held.rounds, "seconds": 0}[what]
            output = _affords(what, cap - used - taken, hold, price)
            if tightest is None or output < tightest.output:
                own = account.scope == "session" and what == "money" and hold.who.money is not None
                stop = BudgetStopped(
                    scope=account.scope, name=account.name, what=what, used=used, cap=cap, need=_takes(what, hold),
                    least=_takes(what, sized(hold, least, price)), held=taken, own=own,
                )  # fmt: skip
                tightest = Room(output, stop)
    assert tightest
    return tightest


def _takes(what: What, hold: Hold) -> int:
    return (hold.money or 0) if what == "money" else hold.input + hold.output if what == "tokens" else 1


def _affords(what: What, left: int, hold: Hold, price: Price | None) -> int:
    match what:
        case "money":
            return price.affords(left, hold.input) if price else hold.output
        case "tokens":
            return left - hold.input
        case _:
            return hold.output if left >= 1 else -1


def measures(account: Account, used: Amount) -> list[tuple[What, int, int]]:
    """What is limited in an account: used so far, and the cap."""
    caps = account.caps
    all: list[tuple[What, int, float | None]] = [
        ("money", used.money, caps.money),
        ("tokens", used.tokens, caps.tokens),
        ("rounds", used.rounds, caps.rounds),
        ("seconds", used.ms // 1000, caps.seconds),
    ]
    return [(what, so_far, ceil(cap)) for what, so_far, cap in all if cap is not None]


def sized(hold: Hold, output: int, price: Price | None) -> Hold:
    return replace(hold, output=output, money=price.cost(hold.input, output) if price else None)


def exceeded(hold: Hold, took: Amount) -> list[Fact]:
    reserved = hold.amount
    over: list[tuple[What, int, int]] = [
        ("money", reserved.money, took.money),
        ("tokens", reserved.tokens, took.tokens),
    ]
    return [
        BudgetExceeded(model=hold.model, what=what, reserved=had, used=used)
        for what, had, used in over
        if used > had and (what != "money" or hold.money is not None)
    ]


def price_of(model: str, info: ModelInfo, input: int, found: list[Account]) -> Price | None:
    """The prices to reckon with. Where money is limited they must be known."""
    price = worst.price(info, input)
    if price is None and any(each.caps.money is not None for each in found):
        name, _, bare = model.partition("/")
        key = f'providers.{name}.models."{bare}"'
        raise UserError(
            f"What {model} costs is not known, so a budget of money cannot hold for it.",
            kind="price_unknown",
            details={"model": model},
            next=[
                f"sylph config set '{key}.price_in' DOLLARS_PER_MILLION_TOKENS  (and price_out)",
                "or limit tokens instead: sylph config set budget.day.tokens 1000000",
            ],
        )
    return price
