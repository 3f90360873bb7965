"""What may be used up and by whom: caps, what is counted against them, and the facts that tell of it."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec import Struct, field

from sylph.core.errors import BudgetSpent
from sylph.core.events import Fact
from sylph.core.text import count

What = Literal["money", "tokens", "rounds", "seconds"]
Scope = Literal["turn", "session", "tree", "label", "day", "month"]

MICROS = 1_000_000
# How many tokens an answer may have where a budget counts them: as set, and where nobody knows what the model can do.
ANSWER, UNKNOWN_ANSWER = 16_384, 8_192


class Caps(Struct, frozen=True, kw_only=True):
    """The most of each; None where there is no limit. Money is in micro-dollars."""

    money: int | None = None
    tokens: int | None = None
    rounds: int | None = None
    seconds: float | None = None

    def __bool__(self) -> bool:
        return any(cap is not None for cap in (self.money, self.tokens, self.rounds, self.seconds))


class Amount(Struct, frozen=True):
    """So much was used, or is meant to be at the most."""

    money: int = 0
    tokens: int = 0
    rounds: int = 0
    ms: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            self.money + other.money, self.tokens + other.tokens, self.rounds + other.rounds, self.ms + other.ms
        )


class Allowance(Struct, frozen=True, kw_only=True):
    """The caps of all sessions that carry one label."""

    day: Caps = Caps()
    month: Caps = Caps()


class Budget(Struct, frozen=True, kw_only=True):
    """All caps there are. `tree` is a session with its forks and workers."""

    turn: Caps = Caps()
    session: Caps = Caps()
    tree: Caps = Caps()
    day: Caps = Caps()
    month: Caps = Caps()
    labels: Mapping[str, Allowance] = field(default_factory=dict[str, Allowance])
    answer: int = ANSWER
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
    scope: Scope
    name: str
    what: What
    used: int
    cap: int

    @property
    def key(self) -> str:
        return f"{self.scope} {self.name} {self.what} {self.cap}"


class BudgetStopped(Fact, frozen=True, kw_only=True):
    """A model was not asked: with the `need` of this call at the most, the budget could have been exceeded.

    `held` is what other calls may still take of it, `window` what the model was taken to hold, 0 where nobody knew.
    """

    wire: ClassVar[str] = "budget.stopped"
    durable: ClassVar[bool] = True
    scope: Scope
    name: str
    what: What
    used: int
    cap: int
    need: int = 0
    held: int = 0
    window: int = 0


class BudgetExceeded(Fact, frozen=True, kw_only=True):
    """An answer took more than the most that was reserved for it: the service counted otherwise than was foreseen."""

    wire: ClassVar[str] = "budget.exceeded"
    model: str
    what: What
    reserved: int
    used: int


BUDGETS: tuple[type[Fact], ...] = (SessionBudget, BudgetWarned, BudgetStopped, BudgetExceeded)


def dollars(micros: int) -> str:
    """`$0.50`, and as many digits as it takes to show less than a cent."""
    value = micros / MICROS
    return f"${value:.2f}" if value >= 1 or not micros % 10_000 else f"${value:.4f}"


def told(what: What, value: int) -> str:
    """An amount in words."""
    return dollars(value) if what == "money" else f"{value:,} s" if what == "seconds" else count(value, what[:-1])


def owner(scope: Scope, name: str) -> str:
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


def spent(stop: BudgetStopped, session: str) -> BudgetSpent:
    """The error that ends the turn, with what can be done about it."""
    said = f"The budget of {owner(stop.scope, stop.name)} is used up: {told(stop.what, stop.used)} of "
    said += told(stop.what, stop.cap)
    if stop.held:
        said += f", {told(stop.what, stop.held)} more may be under way"
    if stop.what in ("money", "tokens"):
        said += f", and the next call could take up to {told(stop.what, stop.need)}"
    details = {"scope": stop.scope, "name": stop.name, "what": stop.what, "used": stop.used, "cap": stop.cap}
    return BudgetSpent(f"{said}.", details=details, next=_next(stop, session))


def _next(stop: BudgetStopped, session: str) -> list[str]:
    more = stop.cap * 2 / MICROS if stop.what == "money" else stop.cap * 2
    table = f"labels.{_label(stop.name)}" if stop.scope == "label" else stop.scope
    advice = [f"sylph config set budget.{table}.{stop.what} {more:g}"]
    if stop.scope == "session" and stop.what == "money":
        advice.insert(0, f'sylph -s {session} --budget {more:g} "go on"')
    if stop.scope in ("day", "month"):
        advice.append(f"or wait for the next {stop.scope}")
    return [*advice, "sylph cost"]


def _label(name: str) -> str:
    label, _, period = name.rpartition(" ")
    return f"{label}.{'day' if period.count('-') == 2 else 'month'}"
