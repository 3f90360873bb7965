"""The caps of the config file, in the units that the engine counts in."""

from sylph.config.settings import Budget as Told
from sylph.config.settings import Caps as Limits
from sylph.core.budget import MICROS, Allowance, Budget, Caps


def budget_of(told: Told) -> Budget:
    labels = {
        name: Allowance(day=_caps(allowed.day), month=_caps(allowed.month)) for name, allowed in told.labels.items()
    }
    return Budget(
        turn=_caps(told.turn),
        session=_caps(told.session),
        tree=_caps(told.tree),
        day=_caps(told.day),
        month=_caps(told.month),
        labels=labels,
        answer=told.answer,
    )


def _caps(told: Limits) -> Caps:
    money = None if told.money is None else max(round(told.money * MICROS), 1)
    return Caps(money=money, tokens=told.tokens, rounds=told.rounds, seconds=told.seconds)
