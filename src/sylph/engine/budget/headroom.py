"""What a budget still affords: how long an answer can be, and which account leaves no more. Pure."""

from math import ceil
from typing import NamedTuple

from msgspec.structs import replace

from sylph.core.errors import UserError
from sylph.core.events import Fact
from sylph.core.facts.budget import BudgetAmount, BudgetExceeded, BudgetStopped, BudgetUnit
from sylph.core.provider import ModelInfo
from sylph.engine.budget import worst_case
from sylph.engine.budget.accounts import BudgetAccount
from sylph.engine.budget.ledger_store import AccountBalance, Reservation
from sylph.engine.budget.worst_case import TokenPrice


class BudgetHeadroom(NamedTuple):
    """How long an answer can be for what is left, and what it is that leaves no more."""

    output: int
    stop: BudgetStopped


def compute_headroom(
    found: list[BudgetAccount],
    stands: list[AccountBalance],
    hold: Reservation,
    price: TokenPrice | None,
    least: int,
    *,
    running: bool = True,
) -> BudgetHeadroom:
    """What the tightest account affords; with `running`, calls under way are taken to need all that they put aside.

    An answer of fewer tokens than `least` is not worth a call.
    """
    tightest: BudgetHeadroom | None = None
    for account, stand in zip(found, stands, strict=True):
        held = stand.lost + stand.running if running else stand.lost
        for what, used, cap in capped_measures(account, stand.used):
            taken = {"money": held.money, "tokens": held.tokens, "rounds": held.rounds, "seconds": 0}[what]
            output = _affordable_output(what, cap - used - taken, hold, price)
            if tightest is None or output < tightest.output:
                own = account.scope == "session" and what == "money" and hold.who.money is not None
                stop = BudgetStopped(
                    scope=account.scope, name=account.name, what=what, used=used, cap=cap,
                    need=_needed_amount(what, hold),
                    least=_needed_amount(what, resize_reservation(hold, least, price)), held=taken, own=own,
                )  # fmt: skip
                tightest = BudgetHeadroom(output, stop)
    assert tightest
    return tightest


def _needed_amount(what: BudgetUnit, hold: Reservation) -> int:
    return (hold.money or 0) if what == "money" else hold.input + hold.output if what == "tokens" else 1


def _affordable_output(what: BudgetUnit, left: int, hold: Reservation, price: TokenPrice | None) -> int:
    match what:
        case "money":
            return price.affordable_tokens(left, hold.input) if price else hold.output
        case "tokens":
            return left - hold.input
        case _:
            return hold.output if left >= 1 else -1


def capped_measures(account: BudgetAccount, used: BudgetAmount) -> list[tuple[BudgetUnit, int, int]]:
    """What is limited in an account: used so far, and the cap."""
    caps = account.caps
    all: list[tuple[BudgetUnit, int, float | None]] = [
        ("money", used.money, caps.money),
        ("tokens", used.tokens, caps.tokens),
        ("rounds", used.rounds, caps.rounds),
        ("seconds", used.ms // 1000, caps.seconds),
    ]
    return [(what, so_far, ceil(cap)) for what, so_far, cap in all if cap is not None]


def resize_reservation(hold: Reservation, output: int, price: TokenPrice | None) -> Reservation:
    return replace(hold, output=output, money=price.cost_of(hold.input, output) if price else None)


def overrun_facts(hold: Reservation, took: BudgetAmount) -> list[Fact]:
    reserved = hold.amount
    over: list[tuple[BudgetUnit, int, int]] = [
        ("money", reserved.money, took.money),
        ("tokens", reserved.tokens, took.tokens),
    ]
    return [
        BudgetExceeded(model=hold.model, what=what, reserved=had, used=used)
        for what, had, used in over
        if used > had and (what != "money" or hold.money is not None)
    ]


def require_price(model: str, info: ModelInfo, input: int, found: list[BudgetAccount]) -> TokenPrice | None:
    """The prices to reckon with. Where money is limited they must be known."""
    price = worst_case.worst_price(info, input)
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
