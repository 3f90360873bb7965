"""What came from outside: the facts of a log that only a command, a deadline or a death explains. All others follow."""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sylph.core import commands, facts
from sylph.core.events import Event, UnreadableRecord
from sylph.core.facts.budget import SessionBudget
from sylph.core.facts.delivery import DeliveryAttempted, DeliveryConfirmed, DeliveryFailed
from sylph.core.facts.file_change import FilesRestored, UndoStarted
from sylph.core.facts.tool_call import ToolFinished
from sylph.core.facts.turn import InputDelivery, StateChanged, TurnEnded
from sylph.core.permission.types import Mode
from sylph.engine.calls.interrupted_calls import DROPPED, is_interrupted_result
from sylph.engine.folds.session_state import SESSION_FOLD, SessionState

DEADLINE_MESSAGE = "The turn took more than"
ASKING_MODES = ("ask", "sandbox")

ExternalKind = Literal["command", "deadline", "close", "given", "delivery"]


class ExternalCause(Struct, frozen=True, kw_only=True):
    """Something from outside that led to the fact `seq`. What is `given` can only be taken as it is, up to `upto`."""

    seq: int
    kind: ExternalKind = "command"
    command: commands.Command | None = None
    upto: int = 0
    new_process: bool = False
    """The process that was at it before had died."""
    when_idle: bool = False
    """Nothing ran at that time."""
    mid_step: bool = False
    """The session was in the middle of something: the model of its answer, a tool of looking ahead."""
    with_previous: bool = False
    """Came in one breath with the message before it: before that could begin a turn."""


def find_external_causes(events: Sequence[Event]) -> dict[int, ExternalCause]:
    found = {happening.seq: happening for happening in _CauseFinder(events).find_causes()}
    for begun, again in _find_cut_deliveries(events):
        between = [found[seq] for seq in sorted(found) if begun < seq <= again]
        if any(happening.new_process for happening in between):
            continue
        # Somebody else goes on with it: whoever began the turn in which that happens, else one who came only for that.
        last = next((each for each in reversed(between) if each.when_idle and each.command), None)
        known = last or ExternalCause(seq=again, command=commands.Continue())
        found[known.seq] = replace(known, new_process=True)
    return found


def _find_cut_deliveries(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    """Where a delivery was on its way when the process died, and where it was sent again."""
    under_way: dict[str, int] = {}
    for event in events:
        match event.body:
            case DeliveryAttempted(id=id):
                if id in under_way:
                    yield under_way[id], event.seq
                under_way[id] = event.seq
            case DeliveryConfirmed(id=id) | DeliveryFailed(id=id):
                under_way.pop(id, None)
            case _:
                pass


def is_outbox_fact(body: object) -> bool:
    """Whether it is a fact of the outbox, which works beside the turn."""
    if isinstance(body, DeliveryConfirmed):
        return body.attempt > 0
    return isinstance(body, DeliveryAttempted | DeliveryFailed)


class _CauseFinder:
    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._state = SessionState()
        self._explained = set[int]()
        # A message or a retry has asked for work that has not begun yet.
        self._asked = False
        self._retried = ""

    def find_causes(self) -> Iterator[ExternalCause]:
        for index, event in enumerate(self._events):
            asked = self._asked
            if event.seq not in self._explained and (found := self._explain_event(index, event)):
                alone = found.command is None or found.new_process or found.when_idle or found.mid_step
                yield found if alone else replace(found, with_previous=asked)
            SESSION_FOLD.step(self._state, event)
            if isinstance(event.body, facts.TurnStarted | facts.TurnResumed):
                self._asked = False

    def _explain_event(self, index: int, event: Event) -> ExternalCause | None:  # noqa: PLR0911 - one flat table
        match event.body:
            case facts.SessionCreated() | facts.SessionForked() | facts.SessionErased():
                return self._explain_given(index)
            case UnreadableRecord() if not any(call.started for call in self._state.open_calls.values()):
                return self._explain_given(index)
            case StateChanged(event=edge):
                return self._explain_transition(index, edge)
            case ToolFinished() | facts.ModelFailed() | facts.CompactionFailed():
                return self._explain_stop(index)
            case facts.TurnResumed() | facts.TurnStarted() | facts.HistoryRewound() | facts.InputCancelled():
                return self._explain_work(index)
            case body if is_outbox_fact(body):
                return ExternalCause(seq=event.seq, kind="delivery")
            case _:
                return self._explain_command(event)

    def _explain_command(self, event: Event) -> ExternalCause | None:  # noqa: C901, PLR0911, PLR0912 - one flat table
        """Facts that say by themselves which command they come from."""
        seq = event.seq
        match event.body:
            case facts.InputReceived() as body:
                return self._explain_input(event, body)
            case facts.Answered(id=id, answer=answer, reason=reason, arguments=given, via=via):
                said = commands.Answer(id=id, answer=answer, reason=reason, actor=event.actor, arguments=given, via=via)
                return ExternalCause(seq=seq, command=said)
            case facts.SessionRenamed(title=title):
                return ExternalCause(seq=seq, command=commands.Rename(title=title))
            case facts.SessionArchived(archived=on):
                return ExternalCause(seq=seq, command=commands.Archive(on=on))
            case facts.SessionPinned(pinned=on):
                return ExternalCause(seq=seq, command=commands.Pin(on=on))
            case facts.SessionSeen(upto=upto):
                return ExternalCause(seq=seq, command=commands.MarkSeen(upto=upto))
            case facts.SessionMode(mode=mode, was=was):
                return ExternalCause(
                    seq=seq, command=commands.SetMode(mode=mode), mid_step=self._mode_came_late(seq, mode, was)
                )
            case facts.SessionSandbox(on=on):
                return ExternalCause(seq=seq, command=commands.SetSandbox(on=on))
            case facts.SessionModel(model=model):
                return ExternalCause(seq=seq, command=commands.SetModel(model=model))
            case SessionBudget(money=money):
                return ExternalCause(seq=seq, command=commands.SetBudget(money=money))
            case facts.SessionRole(role=role, model=model):
                return ExternalCause(seq=seq, command=commands.SetRole(role=role, model=model))
            case facts.GrantRevoked(rule=rule):
                return ExternalCause(seq=seq, command=commands.RevokeGrant(rule=rule))
            case facts.SessionDeleted():
                return ExternalCause(seq=seq, command=commands.Delete(), when_idle=True)
            case facts.SessionRestored():
                return ExternalCause(seq=seq, command=commands.Restore())
            case UndoStarted():
                return ExternalCause(seq=seq, command=commands.Undo(actor=event.actor), when_idle=True)
            case FilesRestored(resumed=True) if not self._asked:
                return ExternalCause(seq=seq, command=commands.Undo(actor=event.actor), new_process=True)
            case _:
                return None

    def _mode_came_late(self, seq: int, mode: Mode, was: Mode) -> bool:
        """Whether what follows was decided under the old mode: the call was being looked at when the mode changed."""
        for event in self._events[seq:]:
            match event.body:
                case facts.Asked(kind="approval"):
                    return mode not in ASKING_MODES
                case facts.ToolDecided(by="mode", reason=reason):
                    return mode != was and reason.startswith(f"mode `{was}`")
                case facts.SessionMode() | facts.SessionSandbox() | facts.SessionModel() | facts.SessionRole():
                    continue
                case SessionBudget() | facts.GrantRevoked():
                    continue
                case facts.SessionRenamed() | facts.InputReceived():
                    continue
                case facts.SessionArchived() | facts.SessionPinned() | facts.SessionSeen():
                    continue
                case body if is_outbox_fact(body):
                    continue
                case _:
                    return False
        return False

    def _explain_input(self, event: Event, body: facts.InputReceived) -> ExternalCause:
        start = body.delivery == "start"
        self._asked = self._asked or start
        delivery: InputDelivery = "steer" if start else body.delivery
        said = commands.Send(
            text=body.text,
            delivery=delivery,
            key=body.key,
            actor=event.actor,
            dry_run=body.dry_run,
            images=body.images,
            form=body.form,
        )
        return ExternalCause(
            seq=event.seq, command=said, new_process=start and self._is_open, when_idle=start and not self._is_open
        )

    @property
    def _is_open(self) -> bool:
        return has_open_work(self._state)

    def _explain_work(self, index: int) -> ExternalCause | None:
        """Facts that begin, take up or take back work."""
        event = self._events[index]
        match event.body:
            case facts.TurnResumed() if not self._asked:
                return ExternalCause(seq=event.seq, command=commands.Continue(), new_process=True)
            case facts.TurnStarted(input=id, retry_of="") if id == self._retried:
                # Only the process that was asked to retry knew that it was a retry.
                return ExternalCause(seq=event.seq, command=commands.Continue(), new_process=True)
            case facts.HistoryRewound(to=to):
                return self._explain_retry(index, to)
            case facts.InputCancelled(id=id):
                after = next((each for each in self._own_events(index) if each.type != event.type), None)
                if after and isinstance(after.body, StateChanged) and after.body.event == "resume_turn":
                    return self._explain_abandoned(index, commands.AbandonTurn())
                return ExternalCause(seq=event.seq, command=commands.Withdraw(id=id))
            case _:
                return None

    def _explain_retry(self, index: int, to: int) -> ExternalCause:
        event, again = self._events[index], commands.Retry(turn=self._events[to - 1].turn)
        # A fork may have left the message behind.
        for said in self._events[index + 1 : index + 2]:
            if isinstance(said.body, facts.InputReceived):
                self._retried = said.body.id
                self._explained.add(said.seq)
                body = said.body
                again = replace(again, text=body.text, dry_run=body.dry_run, key=body.key, actor=said.actor)
        self._asked = True
        return ExternalCause(seq=event.seq, command=again, new_process=self._is_open, when_idle=True)

    def _explain_transition(self, index: int, edge: str) -> ExternalCause | None:  # noqa: PLR0911 - the same
        event = self._events[index]
        match edge:
            case "pause":
                return ExternalCause(seq=event.seq, command=commands.Pause())
            case "unpause":
                return ExternalCause(seq=event.seq, command=commands.Continue())
            case "compact" if self._state.state == "idle":
                return ExternalCause(seq=event.seq, command=commands.Compact(), when_idle=True)
            case "mend" if not self._asked:
                return self._explain_mend(index)
            case "resume_turn" if not isinstance(self._events[index - 1].body, facts.TurnResumed):
                return self._explain_abandoned(index, self._was_dropped(index) and commands.AbandonTurn())
            case "cancel" | "finish":
                return self._explain_stop(index)
            case _:
                return None

    def _explain_mend(self, index: int) -> ExternalCause | None:
        event = self._events[index]
        for each in self._own_events(index + 1)[:1]:
            if isinstance(each.body, StateChanged) and each.body.event == "compact":
                self._explained.add(each.seq)
                return ExternalCause(seq=event.seq, command=commands.Compact(), new_process=True)
        # Where nothing waits, nobody could have asked to go on: a compaction failed, and the session mended itself.
        return (
            ExternalCause(seq=event.seq, command=commands.Continue(), new_process=True) if self._state.queue else None
        )

    def _own_events(self, index: int) -> list[Event]:
        """What the session did from here on, without what was sent beside it."""
        return [event for event in self._events[index:] if not is_outbox_fact(event.body)]

    def _explain_abandoned(self, index: int, drop: commands.AbandonTurn | Literal[False]) -> ExternalCause | None:
        """A turn that was given up, by a person or after too many tries: it ends without anybody stopping it."""
        for event in self._events_until_resumed(index):
            self._explained.add(event.seq)
            if isinstance(event.body, StateChanged) and event.body.event in ("cancel", "finish"):
                break
        if self._asked and not drop:
            return None
        return ExternalCause(seq=self._events[index].seq, command=drop or commands.Continue(), new_process=True)

    def _explain_stop(self, index: int) -> ExternalCause | None:
        """The first trace of an interrupt, of the turn's deadline, or of a program that was closed."""
        event = self._events[index]
        match event.body:
            case facts.ModelFailed(trouble=trouble) if trouble.kind == "cancelled":
                speaking = True
            case facts.CompactionFailed(trouble=trouble) if trouble.kind == "cancelled":
                speaking = False
            case StateChanged():
                speaking = False
            case body if is_interrupted_result(body):
                speaking = False
            case _:
                return None
        cause, reason = self._stop_cause(index)
        if cause == "none":
            return None
        command = commands.Interrupt(reason=reason) if cause == "command" else None
        return ExternalCause(seq=event.seq, kind=cause, command=command, mid_step=speaking)

    def _stop_cause(self, index: int) -> tuple[ExternalKind | Literal["none"], str]:
        """Who stopped it and why, by what follows; what follows is explained with it."""
        for event in self._events[index:]:
            match event.body:
                case facts.CompactionFailed(trouble=trouble) if trouble.kind == "cancelled":
                    self._explained.add(event.seq)
                    return "command", trouble.message
                case StateChanged(event="cancel"):
                    self._explained.add(event.seq)
                    trouble = self._find_turn_end(index).trouble
                    return "command", trouble.message if trouble else ""
                case StateChanged(event="finish"):
                    self._explained.add(event.seq)
                    trouble = self._find_turn_end(index).trouble
                    late = trouble is not None and trouble.message.startswith(DEADLINE_MESSAGE)
                    return ("deadline" if late else "none"), ""
                case facts.TurnResumed() | facts.ModelRequested() | StateChanged(event="resume_turn"):
                    break
                case body if is_interrupted_result(body):
                    self._explained.add(event.seq)
                case _:
                    pass
        return "close", ""

    def _find_turn_end(self, index: int) -> TurnEnded:
        ends = (event.body for event in self._events_until_resumed(index))
        return next((body for body in ends if isinstance(body, TurnEnded)), TurnEnded(outcome="cancelled"))

    def _was_dropped(self, index: int) -> bool:
        """Whether a person gave the turn up; where its end is not there to tell, that makes no difference."""
        trouble = self._find_turn_end(index).trouble
        return trouble is None or trouble.kind == DROPPED

    def _events_until_resumed(self, index: int) -> Iterator[Event]:
        """What follows, up to where another process took the turn up again."""
        yield self._events[index]
        for event in self._events[index + 1 :]:
            again = isinstance(event.body, StateChanged) and event.body.event == "resume_turn"
            # Dropping begins with what waited.
            dropped = again and isinstance(self._events[index].body, facts.InputCancelled)
            if isinstance(event.body, facts.TurnResumed) or (again and not dropped):
                return
            yield event

    def _explain_given(self, index: int) -> ExternalCause:
        """A beginning, a copied past, an erasure: not made by a session at work. What was written with it is too."""
        event = self._events[index]
        last = event
        for each in self._events[index + 1 :] if isinstance(event.body, facts.SessionForked) else ():
            ended = isinstance(each.body, TurnEnded) and each.body.outcome == "interrupted"
            mended = isinstance(each.body, StateChanged) and each.body.event == "mend"
            if each.ts != event.ts or not (ended or mended or isinstance(each.body, facts.SessionErased)):
                break
            last = each
            self._explained.add(each.seq)
        return ExternalCause(seq=event.seq, kind="given", upto=last.seq, new_process=True)


def has_open_work(state: SessionState) -> bool:
    """Whether there is something that a session would go on with."""
    return bool(state.open_turn or state.queue or state.undoing or state.state != "idle")
