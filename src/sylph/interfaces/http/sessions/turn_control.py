"""What is done to a running session: ended, held, let go on, condensed, given up."""

import asyncio
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sylph.core import commands
from sylph.core.errors import UserError
from sylph.core.facts.model import CompactionFailed, CompactionMade
from sylph.core.facts.turn import InputCancelled, TurnEnded, TurnOutcome, TurnStarted
from sylph.engine.folds.state_machine import ActivityState
from sylph.engine.runtime.runtime import Runtime
from sylph.engine.turn.context_usage import ContextShare, ContextUsage
from sylph.interfaces.http.kit.paging import SessionId
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS, find_active_session
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("acts")
# A command that is ended gets a moment to end by itself.
END_TIMEOUT = 10.0


class CancelBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000, description="Why, for the log and the model.")] = ""
    queue: Annotated[
        Literal["keep", "drop"],
        Meta(description="Whether messages that wait for the turn's end begin their own, or are withdrawn too."),
    ] = "keep"


class TurnControlResult(Struct, frozen=True, kw_only=True):
    """How a session stands after it. `outcome` is that of the turn that was ended.

    `withdrawn` are messages to that turn which it did not hear any more; `follows` are those that waited for its end,
    of which the first has begun the next turn.
    """

    session: str
    state: ActivityState
    seq: int
    outcome: TurnOutcome | None = None
    withdrawn: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()


EXAMPLE = TurnControlResult(session="k3xw7hqd8c22", state="idle", seq=57, outcome="cancelled")
CONTEXT_EXAMPLE = ContextUsage(
    model="openai/gpt-5",
    tokens=5510,
    window=400_000,
    percent=1,
    level="",
    parts=(ContextShare(part="system", messages=1, chars=2000, tokens=500),),
    compacted_to=0,
)


@routes.post(
    "/sessions/{id}/cancel",
    scope="chat",
    gives=TurnControlResult,
    errors=SESSION_ERRORS,
    example=CancelBody(reason="the wrong folder"),
    answer=EXAMPLE,
)
async def cancel_turn(server: ServerState, id: SessionId, body: CancelBody) -> TurnControlResult:
    """End the running turn and whatever it runs, and withdraw what it has not heard; answered when it has ended."""
    summary = await find_active_session(server, id)
    return await end_turn(server, summary.id, body.reason, drop=body.queue == "drop")


@routes.post("/sessions/{id}/pause", scope="chat", gives=TurnControlResult, errors=SESSION_ERRORS)
async def pause_turn(server: ServerState, id: SessionId) -> TurnControlResult:
    """Hold the running turn at its next safe point."""
    return await _send_command(server, id, commands.Pause())


@routes.post("/sessions/{id}/resume", scope="chat", gives=TurnControlResult, errors=SESSION_ERRORS)
async def resume_turn(server: ServerState, id: SessionId) -> TurnControlResult:
    """Let a paused turn go on, or pick up one that a crash left open."""
    return await _send_command(server, id, commands.Continue())


@routes.post("/sessions/{id}/drop", scope="chat", gives=TurnControlResult, errors=SESSION_ERRORS)
async def drop_turn(server: ServerState, id: SessionId) -> TurnControlResult:
    """Give up a turn that a crash left open: it ends as cancelled, and nothing of it is run."""
    return await _send_command(server, id, commands.AbandonTurn())


@routes.post("/sessions/{id}/compact", scope="chat", gives=ContextUsage, errors=SESSION_ERRORS, answer=CONTEXT_EXAMPLE)
async def compact_session(server: ServerState, id: SessionId) -> ContextUsage:
    """Summarise what is old now; answered when that is done, with what the next prompt would hold."""
    summary = await find_active_session(server, id)
    await server.app.runtime.send(summary.id, commands.Compact())
    came = server.app.runtime.log.read_events_of(summary.id, (CompactionMade, CompactionFailed), after=summary.seq)
    for event in came[-1:]:
        if isinstance(event.body, CompactionFailed):
            trouble = event.body.trouble
            raise UserError(
                f"Nothing was condensed, and nothing dropped: {trouble.message}",
                kind="compaction_failed",
                details=trouble.details,
                next=trouble.next,
            )
    return await server.app.runtime.context_usage(summary.id)


async def end_turn(server: ServerState, session: str, reason: str = "", *, drop: bool = False) -> TurnControlResult:
    """Ends the turn of a session and waits until it has ended."""
    runtime = server.app.runtime
    was = await runtime.find_session(session)
    over = asyncio.create_task(_wait_turn_end(runtime, session, was.seq))
    try:
        await runtime.send(session, commands.Interrupt(reason=reason, drop=drop))
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(over), END_TIMEOUT)
    except UserError as error:
        if error.trouble.kind == "wrong_state" and (await runtime.find_session(session)).open_turn:
            raise UserError(
                "A crash left this turn open, and nothing of it runs.",
                kind="wrong_state",
                next=["POST …/drop gives it up", "POST …/resume goes on with it"],
            ) from error
        raise
    finally:
        over.cancel()
    outcome = over.result() if over.done() and not over.cancelled() else None
    now = await runtime.find_session(session)
    taken = [event.body for event in runtime.log.read_events_of(session, (InputCancelled,), after=was.seq)]
    gone = tuple(body.id for body in taken if isinstance(body, InputCancelled))
    left = tuple(id for id in was.follows if id not in gone)
    return TurnControlResult(
        session=session, state=now.state, seq=now.seq, outcome=outcome, withdrawn=gone, follows=left
    )


async def _wait_turn_end(runtime: Runtime, session: str, after: int) -> TurnOutcome | None:
    """How the turn ended; told when the next one has begun, where a message waits for that."""
    outcome: TurnOutcome | None = None
    watched = runtime.watch(session, after=after)
    try:
        async for event in watched:
            if isinstance(event.body, TurnEnded):
                outcome = event.body.outcome
            if outcome and (isinstance(event.body, TurnStarted) or not runtime.peek_state(session).queue):
                break
    finally:
        await watched.aclose()
    return outcome


async def _send_command(server: ServerState, id: str, command: commands.Command) -> TurnControlResult:
    runtime = server.app.runtime
    summary = await find_active_session(server, id)
    await runtime.send(summary.id, command)
    now = await runtime.find_session(summary.id)
    return TurnControlResult(session=now.id, state=now.state, seq=now.seq)
