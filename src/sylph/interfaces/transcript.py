"""A session as a person reads it afterwards: turns, what was said, what was done, what it cost. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from sylph.core import facts
from sylph.core.events import Carried, Event, data_of
from sylph.core.text import count
from sylph.engine.undo.differences import TurnDiff
from sylph.interfaces.changes import turn_lines
from sylph.interfaces.clean import clean
from sylph.interfaces.narrate import Done, Ended, Narrator, Shown, end_lines
from sylph.interfaces.render import Line, Span, flat, line

# How much of an output is shown where the whole is not asked for, and of each side of an exchange that is recalled.
BRIEF = 6
RECALLED = 12


class Transcript:
    """Tells a session event by event. Outputs are cut, unless `wholes` has them by the id of their call."""

    def __init__(
        self, wholes: Mapping[str, str] | None = None, turns: Iterable[TurnDiff] = (), *, diff: bool = False
    ) -> None:
        # What is not covered stands with what the turn changed.
        self._narrator = Narrator(gaps=False)
        self._wholes = wholes
        self._turns, self._diff = {each.turn: each for each in turns}, diff

    def see(self, event: Event) -> Iterator[Line]:
        yield from _before(event, self._narrator)
        for act in self._narrator.see(event):
            match act:
                case Done(title=title, mark=mark, more=more):
                    yield (Span(f"▸ {title}  "), *mark)
                    yield from more
                    yield from _output(event, self._wholes)
                # What was heard is told in the words of whoever said it.
                case Shown(lines=lines) if not isinstance(event.body, facts.InputDelivered):
                    yield from lines
                case Ended(outcome=outcome, sums=sums):
                    yield from end_lines(act)
                    if changed := self._turns.get(event.turn):
                        yield from turn_lines(changed, diff=self._diff)
                    yield line(f"{outcome} · {sums}", "dim")
                case _:
                    pass


def transcript(
    events: Iterable[Event],
    wholes: Mapping[str, str] | None = None,
    turns: Iterable[TurnDiff] = (),
    *,
    diff: bool = False,
) -> Iterator[Line]:
    """The whole conversation; of what each turn changed the list, or the differences."""
    told = Transcript(wholes, turns, diff=diff)
    return (row for event in events for row in told.see(event))


def _before(event: Event, narrator: Narrator) -> Iterator[Line]:
    match event.body:
        case facts.TurnStarted(input=input, retry_of=retry_of):
            again = f" (instead of {retry_of})" if retry_of else ""
            again += " (dry run)" if input in narrator.inputs and narrator.inputs[input].dry_run else ""
            yield line("")
            yield (Span(f"── {event.turn}{again} ", "bold"), Span(when(event.ts), "dim"))
            yield from quoted(narrator.said(input))
        case facts.InputDelivered(id=id):
            yield from quoted(narrator.said(id))
        case facts.ModelResponded(role="main", text=text) if text.strip():
            yield from (line(row) for row in clean(text).strip().splitlines())
        case facts.ModelFailed(role="main", partial=partial) if partial.strip():
            yield from (line(row) for row in clean(partial).strip().splitlines())
            yield line("[it ended here, unfinished]", "dim")
        case facts.Asked(question=question):
            yield line(f"? {flat(question, 200)}", "bold")
        case facts.Answered(answer=answer, reason=reason, by=by, via=via):
            why = f": {flat(reason)}" if reason else ""
            yield line(f"  {flat(answer, 200)}{why} ({by or 'user'}{f' with {flat(via)}' if via else ''})")
        case facts.SessionForked(parent=parent, at=at):
            yield line(f"forked from {parent} at {at}", "dim")
        case Carried(type=type, why=why):
            yield line(f"[{flat(type)}: {flat(why)}]", "warn")
        case _:
            pass


def last_words(events: Iterable[Event], exchanges: int = 2) -> list[Line]:
    """The latest things said in a conversation, by both sides, each cut where it is long."""
    said: list[list[Line]] = []
    for event in events:
        match event.body:
            case facts.InputReceived(text=text):
                said.append([])
                said[-1] += _brief(list(quoted(text)))
            case facts.ModelResponded(role="main", text=text, calls=0) if text.strip() and said:
                said[-1] += _brief([line(row) for row in clean(text).strip().splitlines()])
            case _:
                pass
    return [row for exchange in said[-exchanges:] for row in exchange]


def _brief(rows: list[Line]) -> list[Line]:
    more = len(rows) - RECALLED
    return [*rows[:RECALLED], line(f"… {count(more, 'line')} more", "dim")] if more > 0 else rows


def quoted(text: str) -> Iterator[Line]:
    """What the person said."""
    return ((Span("> ", "bold"), Span(row)) for row in clean(text).splitlines())


def _output(event: Event, wholes: Mapping[str, str] | None) -> Iterator[Line]:
    body = event.body
    if not isinstance(body, facts.ToolFinished):
        return
    rows = clean(body.output if wholes is None else wholes.get(body.call, body.output)).splitlines()
    shown = rows[:BRIEF] if wholes is None else rows
    yield from (line(f"    {row}", "dim") for row in shown)
    if len(rows) > len(shown):
        yield line(f"    … {count(len(rows) - len(shown), 'line')} more (--full)", "dim")


def event_rows(events: Iterable[Event]) -> Iterator[tuple[str, ...]]:
    """The raw table of events."""
    for event in events:
        data = data_of(event.body).decode(errors="replace")
        yield (str(event.seq), when(event.ts), event.turn, event.type, event.actor, flat(data, 80))


def when(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
