"""What is done to a running session: ended, held, let go on, condensed, given up."""

import asyncio
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sylph.core import commands
from sylph.core.errors import UserError
from sylph.core.facts import CompactionFailed, CompactionMade, InputCancelled, Outcome, TurnEnded, TurnStarted
from sylph.engine.context import Context, Share
from sylph.engine.runtime import Runtime
from sylph.engine.states import State
from sylph.interfaces.http.house import House
from sylph.interfaces.http.paging import SessionId
from sylph.interfaces.http.route import Routes
from sylph.interfaces.http.sessions import HERE, living

routes = Routes("acts")
# A command that is ended gets a moment to end by itself.
ENDING = 10.0


class CancelBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000, description="Why, for the log and the model.")] = ""
    queue: Annotated[
        Literal["keep", "drop"],
        Meta(description="Whether messages that wait for the turn's end begin their own, or are withdrawn too."),
    ] = "keep"


class Acted(Struct, frozen=True, kw_only=True):
    """How a session stands after it. `outcome` is that of the turn that was ended.

    `withdrawn` are messages to that turn which it did not hear any more; `follows` are those that waited for its end,
    of which the first has begun the next turn.
    """

    session: str
    state: State
    seq: int
    outcome: Outcome | None = None
    withdrawn: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()


EXAMPLE = Acted(session="k3xw7hqd8c22", state="idle", seq=57, outcome="cancelled")
CONTEXT = Context(
    model="openai/gpt-5",
    tokens=5510,
    window=400_000,
    percent=1,
    level="",
    parts=(Share(part="system", messages=1, chars=2000, tokens=500),),
    compacted_to=0,
)


@routes.post(
    "/sessions/{id}/cancel",
    scope="chat",
    gives=Acted,
    errors=HERE,
    example=CancelBody(reason="the wrong folder"),
    answer=EXAMPLE,
)
async def cancel(house: House, id: SessionId, body: CancelBody) -> Acted:
    """End the running turn and whatever it runs, and withdraw what it has not heard; answered when it has ended."""
    summary = await living(house, id)
    return await ended(house, summary.id, body.reason, drop=body.queue == "drop")


@routes.post("/sessions/{id}/pause", scope="chat", gives=Acted, errors=HERE)
async def pause(house: House, id: SessionId) -> Acted:
    """Hold the running turn at its next safe point."""
    return await _told(house, id, commands.Pause())


@routes.post("/sessions/{id}/resume", scope="chat", gives=Acted, errors=HERE)
async def resume(house: House, id: SessionId) -> Acted:
    """Let a paused turn go on, or pick up one that a crash left open."""
    return await _told(house, id, commands.Continue())


@routes.post("/sessions/{id}/drop", scope="chat", gives=Acted, errors=HERE)
async def drop(house: House, id: SessionId) -> Acted:
    """Give up a turn that a crash left open: it ends as cancelled, and nothing of it is run."""
    return await _told(house, id, commands.Drop())


@routes.post("/sessions/{id}/compact", scope="chat", gives=Context, errors=HERE, answer=CONTEXT)
async def compact(house: House, id: SessionId) -> Context:
    """Summarise what is old now; answered when that is done, with what the next prompt would hold."""
    summary = await living(house, id)
    await house.app.runtime.send(summary.id, commands.Compact())
    came = house.app.runtime.log.of(summary.id, (CompactionMade, CompactionFailed), after=summary.seq)
    for event in came[-1:]:
        if isinstance(event.body, CompactionFailed):
            trouble = event.body.trouble
            raise UserError(
                f"Nothing was condensed, and nothing dropped: {trouble.message}",
                kind="compaction_failed",
                details=trouble.details,
                next=trouble.next,
            )
    return await house.app.runtime.context(summary.id)


async def ended(house: House, session: str, reason: str = "", *, drop: bool = False) -> Acted:
    """Ends the turn of a session and waits until it has ended."""
    runtime = house.app.runtime
    was = await runtime.find(session)
    over = asyncio.create_task(_end_of(runtime, session, was.seq))
    try:
        await runtime.send(session, commands.Interrupt(reason=reason, drop=drop))
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(over), ENDING)
    except UserError as error:
        if error.trouble.kind == "wrong_state" and (await runtime.find(session)).open_turn:
            raise UserError(
                "A crash left this turn open, and nothing of it runs.",
                kind="wrong_state",
                next=["POST …/drop gives it up", "POST …/resume goes on with it"],
            ) from error
        raise
    finally:
        over.cancel()
    outcome = over.result() if over.done() and not over.cancelled() else None
    now = await runtime.find(session)
    taken = [event.body for event in runtime.log.of(session, (InputCancelled,), after=was.seq)]
    gone = tuple(body.id for body in taken if isinstance(body, InputCancelled))
    left = tuple(id for id in was.follows if id not in gone)
    return Acted(session=session, state=now.state, seq=now.seq, outcome=outcome, withdrawn=gone, follows=left)


async def _end_of(runtime: Runtime, session: str, after: int) -> Outcome | None:
    """How the turn ended; told when the next one has begun, where a message waits for that."""
    outcome: Outcome | None = None
    watched = runtime.watch(session, after=after)
    try:
        async for event in watched:
            if isinstance(event.body, TurnEnded):
                outcome = event.body.outcome
            if outcome and (isinstance(event.body, TurnStarted) or not runtime.glance(session).queue):
                break
    finally:
        await watched.aclose()
    return outcome


async def _told(house: House, id: str, command: commands.Command) -> Acted:
    runtime = house.app.runtime
    summary = await living(house, id)
    await runtime.send(summary.id, command)
    now = await runtime.find(summary.id)
    return Acted(session=now.id, state=now.state, seq=now.seq)
