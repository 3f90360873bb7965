"""The turns of a session as tasks: what was asked, how it ended, what it cost."""

from collections.abc import Iterable

import msgspec

from sylph.core import facts
from sylph.core.errors import ErrorReport
from sylph.core.events import Event
from sylph.core.messages import Usage
from sylph.engine.log.store import EventLog

# The facts a task is made of.
TASK_FACTS = (facts.InputReceived, facts.TurnStarted, facts.ModelResponded, facts.ModelFailed, facts.TurnEnded)


class TurnTask(msgspec.Struct):
    """One turn, seen from outside. `outcome` is `open` until it has ended."""

    id: str
    session: str
    turn: str
    text: str
    started: int
    ms: int = 0
    outcome: str = "open"
    rounds: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    cost: int | None = None
    answer: str = ""
    retry_of: str = ""
    input: str = ""
    trouble: ErrorReport | None = None
    seq: int = 0
    """The fact it begins with."""


def build_tasks(events: Iterable[Event]) -> list[TurnTask]:
    """Every turn of one session, in order."""
    found: dict[str, TurnTask] = {}
    inputs: dict[str, str] = {}
    for event in events:
        match event.body:
            case facts.InputReceived(id=id, text=text):
                inputs[id] = text
            case facts.TurnStarted(input=input, retry_of=retry_of):
                number = event.turn.removeprefix("t")
                found[event.turn] = TurnTask(
                    f"{event.session}.{number}", event.session, event.turn, inputs.get(input, ""), event.ts
                )
                found[event.turn].retry_of, found[event.turn].input = retry_of, input
                found[event.turn].seq = event.seq
            case facts.ModelResponded() as body if event.turn in found:
                _add_usage(found[event.turn], body)
            case facts.ModelFailed(usage=Usage() as usage, cost=cost, turn=asked) if (asked or event.turn) in found:
                task = found[asked or event.turn]
                task.usage = task.usage + usage
                task.cost = task.cost if cost is None else (task.cost or 0) + cost
            case facts.TurnEnded(outcome=outcome, rounds=rounds, ms=ms, trouble=trouble) if event.turn in found:
                task = found[event.turn]
                task.outcome, task.rounds, task.ms, task.trouble = outcome, rounds, ms, trouble
            case _:
                pass
    return list(found.values())


def read_tasks(log: EventLog, session: str) -> list[TurnTask]:
    return build_tasks(log.read_events_of(session, TASK_FACTS))


def _add_usage(task: TurnTask, body: facts.ModelResponded) -> None:
    task.usage = task.usage + body.usage
    if body.cost is not None:
        task.cost = (task.cost or 0) + body.cost
    if body.role == "main":
        task.answer = body.text
