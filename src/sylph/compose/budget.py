"""The caps of the config file, in the units that the engine counts in."""

from sylph.config.settings import BudgetSettings as Told
from sylph.config.settings import CapSettings as Limits
from sylph.core.facts.budget import MICROS_PER_DOLLAR, Budget, BudgetCaps, LabelCaps


def build_budget(told: Told) -> Budget:
    labels = {
        name: LabelCaps(day=_build_caps(allowed.day), month=_build_caps(allowed.month))
        for name, allowed in told.labels.items()
    }
    return Budget(
        turn=_build_caps(told.turn),
        session=_build_caps(told.session),
        tree=_build_caps(told.tree),
        day=_build_caps(told.day),
        month=_build_caps(told.month),
        labels=labels,
        answer=told.answer,
    )


def _build_caps(told: Limits) -> BudgetCaps:
    money = None if told.money is None else max(round(told.money * MICROS_PER_DOLLAR), 1)
    return BudgetCaps(money=money, tokens=told.tokens, rounds=told.rounds, seconds=told.seconds)
