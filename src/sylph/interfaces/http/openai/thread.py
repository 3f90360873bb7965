"""Which session a conversation is: the one that gave its last answer, a fork of it, or a new one."""

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from sylph.core.errors import NotFound, UserError
from sylph.core.events import Event
from sylph.core.facts import Asked, InputReceived
from sylph.engine.log import Log
from sylph.engine.runtime import Runtime
from sylph.engine.summary import Summary
from sylph.interfaces.http.openai.parts import Said, canonical
from sylph.interfaces.http.openai.tale import Tale
from sylph.interfaces.http.who import Who

PAGE = 500
# A conversation in which more questions than these were answered one after the other is begun anew.
BACK = 16


# The mark in the id of a response that nobody waits for.
BACKGROUND = "background"


class Found(Struct, frozen=True, kw_only=True):
    """Where a conversation stands: after reply `number` of a turn."""

    tale: Tale
    number: int
    summary: Summary
    background: bool = False

    @property
    def asked(self) -> Asked | None:
        """What it waits for an answer to."""
        asked = self.tale.replies[self.number].asked
        return asked if asked and asked.id in self.summary.asked else None


def key_of(runtime: Runtime, who: Who, messages: Iterable[Said]) -> str:
    """The name that a message is kept under: it tells the whole conversation up to it, and whose it is.

    It is made with the home's own key, so that nobody finds out what was said by trying.
    """
    secret = hashlib.blake2b(runtime.veil.key() + who.id.encode()).digest()
    return "chat-" + hashlib.blake2b(canonical(messages), digest_size=20, key=secret).hexdigest()


async def known(runtime: Runtime, who: Who, messages: tuple[Said, ...]) -> Found | None:
    """The turn that gave the last answer of this conversation, if the client tells it as it was."""
    places = [at for at, each in enumerate(messages) if each.role == "assistant" and at]
    for at in reversed(places[-BACK:]):
        for tale, summary in await kept(runtime, key_of(runtime, who, messages[:at])):
            number = _matches(tale, messages[at:])
            if number is not None:
                return Found(tale=tale, number=number, summary=summary)
    return None


async def kept(runtime: Runtime, key: str) -> list[tuple[Tale, Summary]]:
    """The turns that answer the message of that name, the latest first. What a fork has copied does not count."""
    found: list[tuple[Tale, Summary]] = []
    for session, seq, said in runtime.log.keyed(key):
        summary = await runtime.find(session)
        if seq > summary.forked_at and not summary.deleted:
            found.append((told(runtime.log, session, said.id, seq), summary))
    return found


def _matches(tale: Tale, messages: tuple[Said, ...]) -> int | None:
    """Which reply of the turn comes last in these messages; None where they tell it differently."""
    answers = [each.text for each in messages if each.role == "assistant"]
    if len(answers) > len(tale.replies):
        return None
    same = all(_plain(answer) == _plain(reply.text) for answer, reply in zip(answers, tale.replies, strict=False))
    last = len(answers) - 1
    return last if same and tale.whole(last) else None


def _plain(text: str) -> str:
    return " ".join(text.split())


def told(log: Log, session: str, input: str, seq: int) -> Tale:
    """A turn, read from the log."""
    tale = Tale(session=session, input=input)
    after = seq - 1
    while not tale.over and (page := log.read(session, after=after, limit=PAGE)):
        for event in page:
            tale.see(event)
            if tale.over:
                break
        after = page[-1].seq
    return tale


def received(log: Log, session: str, input: str) -> int:
    """Where a message stands in the log; 0 for nowhere."""
    found = log.find(session, InputReceived, f'"id":"{input}"')
    return next((seq for seq, _, fact in found if fact.id == input), 0)


async def by_id(runtime: Runtime, id: str, prefix: str) -> Found:
    """A reply by the id that it was given. Raises NotFound."""
    parts = id.removeprefix(prefix).split("_")
    gone = NotFound(f"There is no response {id!r}.", details={"param": "id"}, next=["it may not have been stored"])
    background = len(parts) == 4 and parts[3] == BACKGROUND
    parts = parts[:3] if background else parts
    if not id.startswith(prefix) or len(parts) != 3 or not parts[2].isdecimal() or len(parts[2]) > 4:
        raise gone
    session, input, number = parts[0], parts[1], int(parts[2])
    if session not in runtime.log.sessions():
        raise gone
    summary = await runtime.find(session)
    seq = received(runtime.log, session, input)
    tale = told(runtime.log, session, input, seq) if seq else None
    if tale is None or summary.deleted or number >= len(tale.replies):
        raise gone
    return Found(tale=tale, number=number, summary=summary, background=background)


async def place(runtime: Runtime, found: Found) -> str:
    """The session in which the conversation goes on: its own, or a fork where that has gone on without it."""
    tale, session = found.tale, found.tale.session
    if not tale.over:
        raise UserError(
            "The answer before this one is not whole yet.",
            kind="wrong_state",
            details={"session": session},
            next=["wait for it", "cancel it"],
        )
    after = tale.end
    while page := await runtime.read(session, after=after, limit=PAGE):
        if went := next((event for event in page if _goes_on(event)), None):
            return await runtime.fork(session, at=went.seq - 1)
        after = page[-1].seq
    if found.summary.queue:
        return await runtime.fork(session, at=after)
    return session


def _goes_on(event: Event) -> bool:
    return isinstance(event.body, InputReceived)
