"""Which session a conversation is: the one that gave its last answer, a fork of it, or a new one."""

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from sylph.core.errors import NotFound, UserError
from sylph.core.events import Event
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import InputReceived
from sylph.engine.folds.session_state import SessionState
from sylph.engine.log.store import EventLog
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.openai.message_parts import ConversationMessage, canonical_bytes
from sylph.interfaces.http.openai.turn_stream import TurnStream

PAGE = 500
# A conversation in which more questions than these were answered one after the other is begun anew.
MAX_LOOKBACK = 16


# The mark in the id of a response that nobody waits for.
BACKGROUND = "background"


class ConversationPosition(Struct, frozen=True, kw_only=True):
    """Where a conversation stands: after reply `number` of a turn."""

    turn: TurnStream
    number: int
    summary: SessionState
    background: bool = False

    @property
    def asked(self) -> Asked | None:
        """What it waits for an answer to."""
        asked = self.turn.replies[self.number].asked
        return asked if asked and asked.id in self.summary.asked else None


def conversation_key(runtime: Runtime, principal: Principal, messages: Iterable[ConversationMessage]) -> str:
    """The name that a message is kept under: it tells the whole conversation up to it, and whose it is.

    It is made with the home's own key, so that nobody finds out what was said by trying.
    """
    secret = hashlib.blake2b(runtime.redactor.encryption_key() + principal.id.encode()).digest()
    return "chat-" + hashlib.blake2b(canonical_bytes(messages), digest_size=20, key=secret).hexdigest()


async def find_conversation(
    runtime: Runtime, principal: Principal, messages: tuple[ConversationMessage, ...]
) -> ConversationPosition | None:
    """The turn that gave the last answer of this conversation, if the client tells it as it was."""
    places = [at for at, each in enumerate(messages) if each.role == "assistant" and at]
    for at in reversed(places[-MAX_LOOKBACK:]):
        for tale, summary in await find_turns(runtime, conversation_key(runtime, principal, messages[:at])):
            number = _match_replies(tale, messages[at:])
            if number is not None:
                return ConversationPosition(turn=tale, number=number, summary=summary)
    return None


async def find_turns(runtime: Runtime, key: str) -> list[tuple[TurnStream, SessionState]]:
    """The turns that answer the message of that name, the latest first. What a fork has copied does not count."""
    found: list[tuple[TurnStream, SessionState]] = []
    for session, seq, said in runtime.log.find_keyed_inputs(key):
        summary = await runtime.find_session(session)
        if seq > summary.forked_at and not summary.deleted:
            found.append((read_turn(runtime.log, session, said.id, seq), summary))
    return found


def _match_replies(tale: TurnStream, messages: tuple[ConversationMessage, ...]) -> int | None:
    """Which reply of the turn comes last in these messages; None where they tell it differently."""
    answers = [each.text for each in messages if each.role == "assistant"]
    if len(answers) > len(tale.replies):
        return None
    same = all(
        _normalize_text(answer) == _normalize_text(reply.text)
        for answer, reply in zip(answers, tale.replies, strict=False)
    )
    last = len(answers) - 1
    return last if same and tale.is_complete(last) else None


def _normalize_text(text: str) -> str:
    return " ".join(text.split())


def read_turn(log: EventLog, session: str, input: str, seq: int) -> TurnStream:
    """A turn, read from the log."""
    tale = TurnStream(session=session, input=input)
    after = seq - 1
    while not tale.is_over and (page := log.read_events(session, after=after, limit=PAGE)):
        for event in page:
            tale.apply_event(event)
            if tale.is_over:
                break
        after = page[-1].seq
    return tale


def find_input(log: EventLog, session: str, input: str) -> int:
    """Where a message stands in the log; 0 for nowhere."""
    found = log.find_facts(session, InputReceived, f'"id":"{input}"')
    return next((seq for seq, _, fact in found if fact.id == input), 0)


async def find_reply(runtime: Runtime, id: str, prefix: str) -> ConversationPosition:
    """A reply by the id that it was given. Raises NotFound."""
    parts = id.removeprefix(prefix).split("_")
    gone = NotFound(f"There is no response {id!r}.", details={"param": "id"}, next=["it may not have been stored"])
    background = len(parts) == 4 and parts[3] == BACKGROUND
    parts = parts[:3] if background else parts
    if not id.startswith(prefix) or len(parts) != 3 or not parts[2].isdecimal() or len(parts[2]) > 4:
        raise gone
    session, input, number = parts[0], parts[1], int(parts[2])
    if session not in runtime.log.session_ids():
        raise gone
    summary = await runtime.find_session(session)
    seq = find_input(runtime.log, session, input)
    tale = read_turn(runtime.log, session, input, seq) if seq else None
    if tale is None or summary.deleted or number >= len(tale.replies):
        raise gone
    return ConversationPosition(turn=tale, number=number, summary=summary, background=background)


async def choose_session(runtime: Runtime, found: ConversationPosition) -> str:
    """The session in which the conversation goes on: its own, or a fork where that has gone on without it."""
    tale, session = found.turn, found.turn.session
    if not tale.is_over:
        raise UserError(
            "The answer before this one is not whole yet.",
            kind="wrong_state",
            details={"session": session},
            next=["wait for it", "cancel it"],
        )
    after = tale.end_seq
    while page := await runtime.read_events(session, after=after, limit=PAGE):
        if went := next((event for event in page if _is_new_input(event)), None):
            return await runtime.fork_session(session, at=went.seq - 1)
        after = page[-1].seq
    if found.summary.queue:
        return await runtime.fork_session(session, at=after)
    return session


def _is_new_input(event: Event) -> bool:
    return isinstance(event.body, InputReceived)
