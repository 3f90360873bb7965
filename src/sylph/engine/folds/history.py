"""Events in, messages out. The conversation a model sees is a fold over the log."""

from collections.abc import Callable, Iterable

import msgspec

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.messages import Image, Message, NativeItems, ToolCall
from sylph.engine.folds.fold import Fold

CHARS_PER_TOKEN = 4
# What an image costs at most services, whatever its size in bytes.
IMAGE_TOKENS = 1_500
NO_RESULT = "[no result: this branch of the session was cut off before the call ended]"


class HistoryEntry(msgspec.Struct, array_like=True):
    """A message and where in the log it came from. `kind` tells inputs and notes apart, which look alike to a model."""

    seq: int
    turn: str
    kind: str
    message: Message


class ConversationHistory(msgspec.Struct):
    entries: list[HistoryEntry] = []
    inputs: dict[str, str] = {}
    pictures: dict[str, tuple[Image, ...]] = {}
    summary: str = ""
    words: tuple[str, ...] = ()
    ledger: tuple[str, ...] = ()
    upto: int = 0
    chars: int = 0
    # What a provider last counted, and how many characters there were then: the best estimate grows from it.
    counted: int = 0
    counted_chars: int = 0
    # How much there was when a compaction last failed: it is not tried again until there is clearly more.
    refused: int = 0
    # The newest rewind. Another one that reaches behind it, or behind a compaction, goes to a place that only the
    # whole log can tell of: then `lost` is set.
    rewound: int = 0
    lost: bool = False
    contract: int = 1
    # The newest request: what came before it was sent.
    asked: int = 0

    def build_messages(self) -> tuple[Message, ...]:
        """What the model is shown: the summary, if there is one, and all since; every call has its result."""
        shown = [Message("user", self.recap_text())] if self.upto else []
        return (*shown, *_pair_results(entry.message for entry in self.entries))

    def recap_text(self) -> str:
        """What stands in for all that was compacted away."""
        return render_recap(self.words, self.ledger, self.summary)

    def estimate_tokens(self) -> int:
        """How many tokens this is: counted by the provider as far as it saw it, estimated for the rest."""
        return max(self.counted + (self.chars - self.counted_chars) // CHARS_PER_TOKEN, 0)


def render_recap(words: tuple[str, ...], ledger: tuple[str, ...], summary: str) -> str:
    said = "\n".join(f"<said>{text}</said>" for text in words)
    done = "\n".join(ledger)
    return (
        "<summary>\nThe beginning of this conversation was condensed. What the user said, in their own words:\n"
        f"{said}\n\nWhat was done:\n{done}\n\nHow it stands:\n{summary}\n</summary>"
    )


def apply_event(state: ConversationHistory, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one flat table
    match event.body:
        case facts.SessionCreated(prompt=contract):
            state.contract = contract
        case facts.ModelRequested(role="main"):
            state.asked = event.seq
        case facts.InputReceived(id=id, text=text, images=images):
            state.inputs[id] = text
            state.pictures |= {id: images} if images else {}
        case facts.InputCancelled(id=id):
            state.inputs.pop(id, None)
            state.pictures.pop(id, None)
        case facts.TurnStarted(input=id) | facts.InputDelivered(id=id):
            said, images = state.inputs.pop(id, ""), state.pictures.pop(id, ())
            _add_entry(state, event, "input", Message("user", said, images=images))
        case facts.ContextAdded(topic=topic, text=text):
            _add_note(state, event, Message("user", f'<context topic="{topic}">\n{text}\n</context>'))
        case facts.ModelResponded(role="main") as body:
            native = NativeItems(body.model, body.native) if body.native else None
            _add_entry(state, event, "answer", Message("assistant", body.text, reasoning=body.reasoning, native=native))
            if body.usage.input:
                state.counted, state.counted_chars = body.usage.input + body.usage.output, state.chars
        case facts.ToolCalled() as body:
            _add_call(state, body)
        case facts.ToolFinished(call=call, output=output, images=images):
            _add_entry(state, event, "result", Message("tool", output, call=call, images=images))
        case facts.CompactionMade() as body:
            _apply_compaction(state, body)
        case facts.CompactionFailed():
            state.refused = state.estimate_tokens()
        case facts.HistoryRewound(to=to):
            _apply_rewind(state, event.seq, to)
        case _:
            pass


def rebuild_history(read: Callable[[int, int], list[Event]], upto: int) -> ConversationHistory:
    """The history after fact `upto`, from the whole log: for the rare rewind to a place that is no longer known."""
    state, seq = ConversationHistory(), 0
    while seq < upto and (page := read(seq, min(1000, upto - seq))):
        for event in page:
            apply_event(state, event)
            if state.lost and isinstance(event.body, facts.HistoryRewound):
                inputs, pictures = state.inputs, state.pictures
                state = rebuild_history(read, event.body.to - 1)
                state.inputs, state.pictures, state.rewound = inputs, pictures, event.seq
        seq = page[-1].seq
    return state


def _add_entry(state: ConversationHistory, event: Event, kind: str, message: Message) -> None:
    state.entries.append(HistoryEntry(event.seq, event.turn, kind, message))
    state.chars += message_size(message)


def _add_note(state: ConversationHistory, event: Event, message: Message) -> None:
    """Notes stand before the message they go with, so that the person has the last word; unless it was sent already."""
    _add_entry(state, event, "note", message)
    before = state.entries[-2] if len(state.entries) > 1 else None
    if before and before.kind == "input" and (state.contract == 1 or before.seq > state.asked):
        state.entries[-2:] = reversed(state.entries[-2:])


def _add_call(state: ConversationHistory, body: facts.ToolCalled) -> None:
    for entry in reversed(state.entries):
        if entry.kind == "answer":
            call = ToolCall(body.call, body.name, body.arguments)
            entry.message = msgspec.structs.replace(entry.message, calls=(*entry.message.calls, call))
            state.chars += len(body.arguments)
            return


def _apply_compaction(state: ConversationHistory, body: facts.CompactionMade) -> None:
    state.entries = [entry for entry in state.entries if entry.seq >= body.upto]
    state.summary, state.words, state.ledger, state.upto = body.summary, body.words, body.ledger, body.upto
    state.refused = state.asked = 0
    _recount_chars(state)


def _apply_rewind(state: ConversationHistory, seq: int, to: int) -> None:
    state.lost = state.lost or to <= max(state.upto, state.rewound)
    state.rewound = seq
    state.entries = [entry for entry in state.entries if entry.seq < to]
    state.asked = min(state.asked, to)
    _recount_chars(state)


def _recount_chars(state: ConversationHistory) -> None:
    state.chars = (len(state.recap_text()) if state.upto else 0) + sum(
        message_size(entry.message) for entry in state.entries
    )
    state.counted, state.counted_chars = state.chars // CHARS_PER_TOKEN, state.chars


def message_size(message: Message) -> int:
    """In characters; pictures as many as they cost."""
    called = sum(len(call.arguments) + len(call.name) for call in message.calls)
    return len(message.text) + called + len(message.images) * IMAGE_TOKENS * CHARS_PER_TOKEN


def _pair_results(messages: Iterable[Message]) -> Iterable[Message]:
    """Providers refuse a call without a result, so a branch that was cut off gets one that says so."""
    waiting: dict[str, None] = {}
    for message in messages:
        if message.role != "tool":
            yield from (Message("tool", NO_RESULT, call=call) for call in waiting)
            waiting = {call.id: None for call in message.calls}
            yield message
        elif message.call in waiting:
            del waiting[message.call]
            yield message
    yield from (Message("tool", NO_RESULT, call=call) for call in waiting)


HISTORY_FOLD: Fold[ConversationHistory] = Fold("history", 4, ConversationHistory, apply_event)
