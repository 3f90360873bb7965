"""Model calls: what was asked and answered, how the prompt grew, and how it was condensed."""

from collections.abc import Iterator

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.text import count, first_line
from sylph.engine.diagnosis.finding import Case, Finding, State

# A compaction that frees less than this share was not worth its price.
WORTH = 0.1


def requests(case: Case) -> Iterator[Finding]:
    yield from _silent(case)
    yield from _failures(case)
    for finish, said in (("length", "cut at the model's limit"), ("filtered", "stopped by the provider's filter")):
        found = [event for event in case.events if _finish(event) == finish]
        if found:
            state: State = "warn" if found[-1].turn == case.last_turn else "note"
            message = f"{count(len(found), 'answer')} {said}."
            yield Finding("model", state, message, _seqs(found), (case.task(found[-1].turn),))


def _silent(case: Case) -> Iterator[Finding]:
    """Requests that got neither an answer nor an error. Where a turn was stopped or a process died, that must be so."""
    open: Event | None = None
    lost: list[Event] = []
    for event in case.events:
        match event.body:
            case facts.ModelRequested():
                if open:
                    lost.append(open)
                open = event
            case facts.ModelResponded() | facts.ModelFailed(retry_ms=None) | facts.SessionForked():
                open = None
            case facts.CompactionFailed() | facts.TurnResumed():
                open = None
            case facts.TurnEnded(outcome=outcome):
                lost += [open] if open and outcome == "finished" else []
                open = None
            case _:
                pass
    if lost:
        message = f"{count(len(lost), 'request')} without an answer or an error."
        yield Finding("model", "warn", message, _seqs(lost), (case.facts,))
    if open and case.live.pid:
        yield Finding("model", "note", "The model is thinking now.", (open.seq,), ("sylph status",))


def _failures(case: Case) -> Iterator[Finding]:
    again: list[Event] = []
    for event in case.events:
        if not isinstance(event.body, facts.ModelFailed):
            continue
        if event.body.retry_ms is not None:
            again.append(event)
        elif event.body.trouble.kind not in ("cancelled", "interrupted"):
            state: State = "warn" if event.turn == case.last_turn else "note"
            trouble = event.body.trouble
            message = f"{event.body.model} failed ({trouble.kind}): {first_line(trouble.message, 200)}"
            yield Finding("model", state, message, (event.seq,), ("sylph doctor", *trouble.next))
    if again:
        kinds = sorted({event.body.trouble.kind for event in again if isinstance(event.body, facts.ModelFailed)})
        message = f"{count(len(again), 'request')} tried again: {', '.join(kinds)}."
        yield Finding("model", "note", message, _seqs(again), ("sylph status",))


def prompt(case: Case) -> Iterator[Finding]:
    """The prompt only grows, so that the provider's cache holds; whatever makes it shorter has a name."""
    before: tuple[int, facts.ModelRequested] | None = None
    causes: dict[str, int] = {}
    for event in case.events:
        if name := _cause(event):
            causes[name] = event.seq
        if not isinstance(event.body, facts.ModelRequested) or event.body.role != "main":
            continue
        if before and before[1].head != event.body.head:
            causes["another head (a newer Sylph, other tools)"] = event.seq
        if before and _anew(event.body, before[1]):
            yield _shorter(case, before, (event.seq, event.body), causes)
        before, causes = (event.seq, event.body), {}


def _anew(now: facts.ModelRequested, before: facts.ModelRequested) -> bool:
    """Whether a prompt does not go on from the one before. It says so itself; older ones are told by their length."""
    return now.bytes < before.bytes if now.kept is None else now.missed not in ("", "first")


def _shorter(
    case: Case, before: tuple[int, facts.ModelRequested], now: tuple[int, facts.ModelRequested], causes: dict[str, int]
) -> Finding:
    size = f"{before[1].bytes:,} bytes, then {now[1].bytes:,}"
    if causes:
        message = f"The prompt began anew ({size}): {', '.join(causes)}."
        return Finding("prompt", "note", message, (*causes.values(), now[0]), (case.facts,))
    what = f"{now[1].missed} changed, " if now[1].missed else ""
    message = f"The prompt began anew ({size}): {what}nothing explains it: the provider's cache was lost."
    return Finding("prompt", "warn", message, (before[0], now[0]), (case.facts, f"sylph verify {case.session}"))


def _cause(event: Event) -> str:
    match event.body:
        case facts.CompactionMade():
            return "a compaction"
        case facts.HistoryRewound():
            return "a retry"
        case facts.SessionModel() | facts.ModelFellBack():
            return "another model"
        case facts.SessionErased():
            return "an erasure"
        case facts.TurnResumed():
            return "a resumed turn, whose notes may differ"
        case _:
            return ""


def compaction(case: Case) -> Iterator[Finding]:
    failed: list[Event] = []
    made: list[Event] = []
    for event in case.events:
        match event.body:
            case facts.CompactionFailed(trouble=trouble):
                failed += [event] if trouble.kind != "cancelled" else []
            case facts.CompactionMade(tokens_before=before, tokens_after=after):
                made.append(event)
                if after > before * (1 - WORTH):
                    message = f"A compaction made {after:,} of {before:,} tokens: hardly any."
                    yield Finding("compaction", "warn", message, (event.seq,), (f"sylph session fork {case.session}",))
            case _:
                pass
    if failed:
        open = not made or made[-1].seq < failed[-1].seq
        trouble = failed[-1].body.trouble if isinstance(failed[-1].body, facts.CompactionFailed) else None
        said = first_line(trouble.message, 200) if trouble else ""
        message = f"{count(len(failed), 'compaction')} failed, nothing was dropped: {said}"
        yield Finding("compaction", "warn" if open else "note", message, _seqs(failed), (case.facts, "sylph models"))


def _finish(event: Event) -> str:
    return event.body.finish if isinstance(event.body, facts.ModelResponded) else ""


def _seqs(events: list[Event]) -> tuple[int, ...]:
    return tuple(event.seq for event in events)
