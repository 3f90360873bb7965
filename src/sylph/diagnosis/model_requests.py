"""Model calls: what was asked and answered, how the prompt grew, and how it was condensed."""

from collections.abc import Iterator

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.text.formatting import count_noun, first_line
from sylph.diagnosis.finding import DiagnosisCase, DiagnosisFinding, FindingState

# A compaction that frees less than this share was not worth its price.
MIN_SAVING = 0.1


def check_requests(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    yield from _find_unanswered(case)
    yield from _find_failures(case)
    for finish, said in (("length", "cut at the model's limit"), ("filtered", "stopped by the provider's filter")):
        found = [event for event in case.events if _finish_reason(event) == finish]
        if found:
            state: FindingState = "warn" if found[-1].turn == case.last_turn else "note"
            message = f"{count_noun(len(found), 'answer')} {said}."
            yield DiagnosisFinding("model", state, message, _event_seqs(found), (case.task_command(found[-1].turn),))


def _find_unanswered(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
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
        message = f"{count_noun(len(lost), 'request')} without an answer or an error."
        yield DiagnosisFinding("model", "warn", message, _event_seqs(lost), (case.events_command,))
    if open and case.live.pid:
        yield DiagnosisFinding("model", "note", "The model is thinking now.", (open.seq,), ("sylph status",))


def _find_failures(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    again: list[Event] = []
    for event in case.events:
        if not isinstance(event.body, facts.ModelFailed):
            continue
        if event.body.retry_ms is not None:
            again.append(event)
        elif event.body.trouble.kind not in ("cancelled", "interrupted"):
            state: FindingState = "warn" if event.turn == case.last_turn else "note"
            trouble = event.body.trouble
            message = f"{event.body.model} failed ({trouble.kind}): {first_line(trouble.message, 200)}"
            yield DiagnosisFinding("model", state, message, (event.seq,), ("sylph doctor", *trouble.next))
    if again:
        kinds = sorted({event.body.trouble.kind for event in again if isinstance(event.body, facts.ModelFailed)})
        message = f"{count_noun(len(again), 'request')} tried again: {', '.join(kinds)}."
        yield DiagnosisFinding("model", "note", message, _event_seqs(again), ("sylph status",))


def check_prompt(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    """The prompt only grows, so that the provider's cache holds; whatever makes it shorter has a name."""
    before: tuple[int, facts.ModelRequested] | None = None
    causes: dict[str, int] = {}
    for event in case.events:
        if name := _restart_cause(event):
            causes[name] = event.seq
        if not isinstance(event.body, facts.ModelRequested) or event.body.role != "main":
            continue
        if before and before[1].head != event.body.head:
            causes["another head (a newer Sylph, other tools)"] = event.seq
        if before and _is_new_prompt(event.body, before[1]):
            yield _describe_restart(case, before, (event.seq, event.body), causes)
        before, causes = (event.seq, event.body), {}


def _is_new_prompt(now: facts.ModelRequested, before: facts.ModelRequested) -> bool:
    """Whether a prompt does not go on from the one before. It says so itself; older ones are told by their length."""
    return now.bytes < before.bytes if now.kept is None else now.missed not in ("", "first")


def _describe_restart(
    case: DiagnosisCase,
    before: tuple[int, facts.ModelRequested],
    now: tuple[int, facts.ModelRequested],
    causes: dict[str, int],
) -> DiagnosisFinding:
    size = f"{before[1].bytes:,} bytes, then {now[1].bytes:,}"
    if causes:
        message = f"The prompt began anew ({size}): {', '.join(causes)}."
        return DiagnosisFinding("prompt", "note", message, (*causes.values(), now[0]), (case.events_command,))
    what = f"{now[1].missed} changed, " if now[1].missed else ""
    message = f"The prompt began anew ({size}): {what}nothing explains it: the provider's cache was lost."
    return DiagnosisFinding(
        "prompt", "warn", message, (before[0], now[0]), (case.events_command, f"sylph verify {case.session}")
    )


def _restart_cause(event: Event) -> str:
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


def check_compaction(case: DiagnosisCase) -> Iterator[DiagnosisFinding]:
    failed: list[Event] = []
    made: list[Event] = []
    for event in case.events:
        match event.body:
            case facts.CompactionFailed(trouble=trouble):
                failed += [event] if trouble.kind != "cancelled" else []
            case facts.CompactionMade(tokens_before=before, tokens_after=after):
                made.append(event)
                if after > before * (1 - MIN_SAVING):
                    message = f"A compaction made {after:,} of {before:,} tokens: hardly any."
                    yield DiagnosisFinding(
                        "compaction", "warn", message, (event.seq,), (f"sylph session fork {case.session}",)
                    )
            case _:
                pass
    if failed:
        open = not made or made[-1].seq < failed[-1].seq
        trouble = failed[-1].body.trouble if isinstance(failed[-1].body, facts.CompactionFailed) else None
        said = first_line(trouble.message, 200) if trouble else ""
        message = f"{count_noun(len(failed), 'compaction')} failed, nothing was dropped: {said}"
        yield DiagnosisFinding(
            "compaction",
            "warn" if open else "note",
            message,
            _event_seqs(failed),
            (case.events_command, "sylph models"),
        )


def _finish_reason(event: Event) -> str:
    return event.body.finish if isinstance(event.body, facts.ModelResponded) else ""


def _event_seqs(events: list[Event]) -> tuple[int, ...]:
    return tuple(event.seq for event in events)
