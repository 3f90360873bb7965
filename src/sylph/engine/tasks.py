"""The turns of a session as tasks: what was asked, how it ended, what it cost."""

from collections.abc import Iterable

import msgspec

from sylph.core import facts
from sylph.core.errors import Trouble
from sylph.core.events import Event
from sylph.core.messages import Usage
from sylph.engine.log import Log

# The facts a task is made of.
KINDS = (facts.InputReceived, facts.TurnStarted, facts.ModelResponded, facts.ModelFailed, facts.TurnEnded)


class Task(msgspec.Struct):
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
    trouble: Trouble | None = None
    seq: int = 0
    """The fact it begins with."""


def tasks(events: Iterable[Event]) -> list[Task]:
    """Every turn of one session, in order."""
    found: dict[str, Task] = {}
    inputs: dict[str, str] = {}
    for event in events:
        match event.body:
            case facts.InputReceived(id=id, text=text):
                inputs[id] = text
            case facts.TurnStarted(input=input, retry_of=retry_of):
                number = event.turn.removeprefix("t")
                found[event.turn] = Task(
                    f"{event.session}.{number}", event.session, event.turn, inputs.get(input, ""), event.ts
                )
                found[event.turn].retry_of, found[event.turn].input = retry_of, input
                found[event.turn].seq = event.seq
            case facts.ModelResponded() as body if event.turn in found:
                _spend(found[event.turn], body)
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


def read(log: Log, session: str) -> list[Task]:
    return tasks(log.of(session, KINDS))


def _spend(task: Task, body: facts.ModelResponded) -> None:
    task.usage = task.usage + body.usage
    if body.cost is not None:
        task.cost = (task.cost or 0) + body.cost
    if body.role == "main":
        task.answer = body.text
