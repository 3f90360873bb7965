"""What may be used up and by whom: caps, what is counted against them, and the facts that tell of it."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec import Struct, field

from sylph.core.errors import BudgetSpent
from sylph.core.events import Fact
from sylph.core.text.formatting import count_noun

BudgetUnit = Literal["money", "tokens", "rounds", "seconds"]
BudgetScope = Literal["turn", "session", "tree", "label", "day", "month"]

MICROS_PER_DOLLAR = 1_000_000
# How many tokens an answer may have where a budget counts them: as set, and where nobody knows what the model can do.
DEFAULT_ANSWER_TOKENS, UNKNOWN_MODEL_TOKENS = 16_384, 8_192


class BudgetCaps(Struct, frozen=True, kw_only=True):
    """The most of each; None where there is no limit. Money is in micro-dollars."""

    money: int | None = None
    tokens: int | None = None
    rounds: int | None = None
    seconds: float | None = None

    def __bool__(self) -> bool:
        return any(cap is not None for cap in (self.money, self.tokens, self.rounds, self.seconds))


class BudgetAmount(Struct, frozen=True):
    """So much was used, or is meant to be at the most."""

    money: int = 0
    tokens: int = 0
    rounds: int = 0
    ms: int = 0

    def __add__(self, other: "BudgetAmount") -> "BudgetAmount":
        return BudgetAmount(
            self.money + other.money, self.tokens + other.tokens, self.rounds + other.rounds, self.ms + other.ms
        )


class LabelCaps(Struct, frozen=True, kw_only=True):
    """The caps of all sessions that carry one label."""

    day: BudgetCaps = BudgetCaps()
    month: BudgetCaps = BudgetCaps()


class Budget(Struct, frozen=True, kw_only=True):
    """All caps there are. `tree` is a session with its forks and workers."""

    turn: BudgetCaps = BudgetCaps()
    session: BudgetCaps = BudgetCaps()
    tree: BudgetCaps = BudgetCaps()
    day: BudgetCaps = BudgetCaps()
    month: BudgetCaps = BudgetCaps()
    labels: Mapping[str, LabelCaps] = field(default_factory=dict[str, LabelCaps])
    answer: int = DEFAULT_ANSWER_TOKENS
    """How many tokens an answer may have at the most, where money or tokens are limited."""


class SessionBudget(Fact, frozen=True, kw_only=True):
    """The person gave this session a cap of its own in micro-dollars; None takes it back, and the settings count."""

    wire: ClassVar[str] = "session.budget"
    durable: ClassVar[bool] = True
    money: int | None = None


class BudgetWarned(Fact, frozen=True, kw_only=True):
    """Four fifths of a budget are used up. `name` is the turn, session, tree, label, day or month it is about;
    money is in micro-dollars."""

    wire: ClassVar[str] = "budget.warned"
    scope: BudgetScope
    name: str
    what: BudgetUnit
    used: int
    cap: int

    @property
    def dedup_key(self) -> str:
        return f"{self.scope} {self.name} {self.what} {self.cap}"


class BudgetStopped(Fact, frozen=True, kw_only=True):
    """A model was not asked: with the `need` of this call at the most, the budget could have been exceeded.

    `least` is what the shortest answer that is worth a call would have needed, `held` what other calls may still take,
    `window` what the model was taken to hold, 0 where unknown. `own` says that the session was given the cap itself.
    """

    wire: ClassVar[str] = "budget.stopped"
    durable: ClassVar[bool] = True
    scope: BudgetScope
    name: str
    what: BudgetUnit
    used: int
    cap: int
    need: int = 0
    least: int = 0
    held: int = 0
    window: int = 0
    own: bool = False


class BudgetExceeded(Fact, frozen=True, kw_only=True):
    """An answer took more than the most that was reserved for it: the service counted otherwise than was foreseen."""

    wire: ClassVar[str] = "budget.exceeded"
    model: str
    what: BudgetUnit
    reserved: int
    used: int


BUDGET_FACTS: tuple[type[Fact], ...] = (SessionBudget, BudgetWarned, BudgetStopped, BudgetExceeded)


def format_dollars(micros: int) -> str:
    """`$0.50`, and as many digits as it takes to show less than a cent."""
    value = micros / MICROS_PER_DOLLAR
    return f"${value:.2f}" if value >= 1 or not micros % 10_000 else f"${value:.4f}"


def format_amount(what: BudgetUnit, value: int) -> str:
    """An amount in words."""
    return (
        format_dollars(value)
        if what == "money"
        else f"{value:,} s"
        if what == "seconds"
        else count_noun(value, what[:-1])
    )


def format_share(what: BudgetUnit, used: int, cap: int) -> str:
    """`$0.06 of $0.50`, `2 of 40 rounds`."""
    so_far = format_dollars(used) if what == "money" else f"{used:,}"
    return f"{so_far} of {format_amount(what, cap)}"


def describe_scope(scope: BudgetScope, name: str) -> str:
    """Whose budget it is, in words."""
    match scope:
        case "turn":
            return "this turn"
        case "session":
            return "this session"
        case "tree":
            return "this session, its forks and workers"
        case "label":
            label, _, period = name.rpartition(" ")
            return f"{label} in {period}"
        case _:
            return name


def budget_spent_error(stop: BudgetStopped, session: str) -> BudgetSpent:
    """The error that ends the turn, with what can be done about it."""
    whose = describe_scope(stop.scope, stop.name)
    if stop.used >= stop.cap:
        said = f"The budget of {whose} is used up: {format_share(stop.what, stop.used, stop.cap)}."
    else:
        said = f"The next call does not fit into the budget of {whose}: "
        said += f"{format_share(stop.what, stop.used, stop.cap)} used ({stop.used * 100 // stop.cap} %)"
        said += f", {format_amount(stop.what, stop.held)} more held for other calls" if stop.held else ""
        if stop.what in ("money", "tokens"):
            least = stop.least or stop.need
            said += f", and the call takes {format_amount(stop.what, least)} at the least"
            said += f", up to {format_amount(stop.what, stop.need)}" if stop.need > least else ""
            said += f". The budget would have to be {format_amount(stop.what, stop.used + stop.held + least)} or more"
        said += "."
    details = {"scope": stop.scope, "name": stop.name, "what": stop.what, "used": stop.used, "cap": stop.cap}
    return BudgetSpent(said, details=details, next=_next_steps(stop, session))


def resume_command(session: str) -> str:
    return f'sylph -s {session} "go on"'


def _next_steps(stop: BudgetStopped, session: str) -> list[str]:
    more = _sufficient_cap(stop)
    table = f"labels.{_label_path(stop.name)}" if stop.scope == "label" else stop.scope
    raised = [f"sylph config set budget.{table}.{stop.what} {more}", resume_command(session)]
    if stop.scope == "session" and stop.what == "money":
        here = f'sylph -s {session} --budget {more} "go on"'
        # What the session was given itself counts instead of the setting.
        raised = [here] if stop.own else [here, f"or for all sessions: {raised[0]}"]
    elif stop.scope == "turn" and stop.used:
        raised = [f"{resume_command(session)}  (the next turn has its budget anew)", f"or for all turns: {raised[0]}"]
    elif stop.scope in ("day", "month"):
        raised.append(f"or wait for the next {stop.scope}")
    return [*raised, "sylph cost"]


def _sufficient_cap(stop: BudgetStopped) -> str:
    """A cap with which the call fits, even if it has grown by then: two digits, rounded up."""
    least = max(stop.cap * 2, stop.used + stop.held + max(stop.need, stop.least, 1) * 2)
    step = 10 ** max(len(str(least)) - 2, 0)
    value = -(-least // step) * step
    return f"{value / MICROS_PER_DOLLAR:.6f}".rstrip("0").rstrip(".") if stop.what == "money" else str(value)


def _label_path(name: str) -> str:
    label, _, period = name.rpartition(" ")
    return f"{label}.{'day' if period.count('-') == 2 else 'month'}"
