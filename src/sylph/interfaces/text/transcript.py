"""A session as a person reads it afterwards: turns, what was said, what was done, what it cost. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from sylph.core import facts
from sylph.core.events import Event, UnreadableRecord, encode_body
from sylph.core.text.formatting import count_noun
from sylph.engine.undo.turn_diff import TurnDiff
from sylph.interfaces.text.file_changes import turn_change_lines
from sylph.interfaces.text.render import StyledLine, TextSpan, one_line, styled_line
from sylph.interfaces.text.sanitize import sanitize_text
from sylph.interfaces.text.turn_presenter import CallEnded, NoticeShown, TurnConcluded, TurnPresenter, turn_end_lines

# How much of an output is shown where the whole is not asked for, and of each side of an exchange that is recalled.
OUTPUT_LINES = 6
EXCHANGE_LINES = 12


class TranscriptRenderer:
    """Tells a session event by event. Outputs are cut, unless `wholes` has them by the id of their call."""

    def __init__(
        self, wholes: Mapping[str, str] | None = None, turns: Iterable[TurnDiff] = (), *, diff: bool = False
    ) -> None:
        # What is not covered stands with what the turn changed.
        self._narrator = TurnPresenter(gaps=False)
        self._wholes = wholes
        self._turns, self._diff = {each.turn: each for each in turns}, diff

    def render_event(self, event: Event) -> Iterator[StyledLine]:
        yield from _leading_lines(event, self._narrator)
        for act in self._narrator.present_event(event):
            match act:
                case CallEnded(title=title, mark=mark, more=more):
                    yield (TextSpan(f"▸ {title}  "), *mark)
                    yield from more
                    yield from _output_lines(event, self._wholes)
                # What was heard is told in the words of whoever said it.
                case NoticeShown(lines=lines) if not isinstance(event.body, facts.InputDelivered):
                    yield from lines
                case TurnConcluded(outcome=outcome, sums=sums):
                    yield from turn_end_lines(act)
                    if changed := self._turns.get(event.turn):
                        yield from turn_change_lines(changed, diff=self._diff)
                    yield styled_line(f"{outcome} · {sums}", "dim")
                case _:
                    pass


def render_transcript(
    events: Iterable[Event],
    wholes: Mapping[str, str] | None = None,
    turns: Iterable[TurnDiff] = (),
    *,
    diff: bool = False,
) -> Iterator[StyledLine]:
    """The whole conversation; of what each turn changed the list, or the differences."""
    told = TranscriptRenderer(wholes, turns, diff=diff)
    return (row for event in events for row in told.render_event(event))


def _leading_lines(event: Event, narrator: TurnPresenter) -> Iterator[StyledLine]:
    match event.body:
        case facts.TurnStarted(input=input, retry_of=retry_of):
            again = f" (instead of {retry_of})" if retry_of else ""
            again += " (dry run)" if input in narrator.inputs and narrator.inputs[input].dry_run else ""
            yield styled_line("")
            yield (TextSpan(f"── {event.turn}{again} ", "bold"), TextSpan(format_time(event.ts), "dim"))
            yield from quote_message(narrator.message_text(input))
        case facts.InputDelivered(id=id):
            yield from quote_message(narrator.message_text(id))
        case facts.ModelResponded(role="main", text=text) if text.strip():
            yield from (styled_line(row) for row in sanitize_text(text).strip().splitlines())
        case facts.ModelFailed(role="main", partial=partial) if partial.strip():
            yield from (styled_line(row) for row in sanitize_text(partial).strip().splitlines())
            yield styled_line("[it ended here, unfinished]", "dim")
        case facts.Asked(question=question):
            yield styled_line(f"? {one_line(question, 200)}", "bold")
        case facts.Answered(answer=answer, reason=reason, by=by, via=via):
            why = f": {one_line(reason)}" if reason else ""
            yield styled_line(
                f"  {one_line(answer, 200)}{why} ({by or 'user'}{f' with {one_line(via)}' if via else ''})"
            )
        case facts.SessionForked(parent=parent, at=at):
            yield styled_line(f"forked from {parent} at {at}", "dim")
        case UnreadableRecord(type=type, why=why):
            yield styled_line(f"[{one_line(type)}: {one_line(why)}]", "warn")
        case _:
            pass


def recent_exchanges(events: Iterable[Event], exchanges: int = 2) -> list[StyledLine]:
    """The latest things said in a conversation, by both sides, each cut where it is long."""
    said: list[list[StyledLine]] = []
    for event in events:
        match event.body:
            case facts.InputReceived(text=text):
                said.append([])
                said[-1] += _shorten_rows(list(quote_message(text)))
            case facts.ModelResponded(role="main", text=text, calls=0) if text.strip() and said:
                said[-1] += _shorten_rows([styled_line(row) for row in sanitize_text(text).strip().splitlines()])
            case _:
                pass
    return [row for exchange in said[-exchanges:] for row in exchange]


def _shorten_rows(rows: list[StyledLine]) -> list[StyledLine]:
    more = len(rows) - EXCHANGE_LINES
    return [*rows[:EXCHANGE_LINES], styled_line(f"… {count_noun(more, 'line')} more", "dim")] if more > 0 else rows


def quote_message(text: str) -> Iterator[StyledLine]:
    """What the person said."""
    return ((TextSpan("> ", "bold"), TextSpan(row)) for row in sanitize_text(text).splitlines())


def _output_lines(event: Event, wholes: Mapping[str, str] | None) -> Iterator[StyledLine]:
    body = event.body
    if not isinstance(body, facts.ToolFinished):
        return
    rows = sanitize_text(body.output if wholes is None else wholes.get(body.call, body.output)).splitlines()
    shown = rows[:OUTPUT_LINES] if wholes is None else rows
    yield from (styled_line(f"    {row}", "dim") for row in shown)
    if len(rows) > len(shown):
        yield styled_line(f"    … {count_noun(len(rows) - len(shown), 'line')} more (--full)", "dim")


def event_rows(events: Iterable[Event]) -> Iterator[tuple[str, ...]]:
    """The raw table of events."""
    for event in events:
        data = encode_body(event.body).decode(errors="replace")
        yield (str(event.seq), format_time(event.ts), event.turn, event.type, event.actor, one_line(data, 80))


def format_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
