"""Undo and redo as commands to a session: what is noted, restored, and told to the model."""

from sylph.core import commands, facts
from sylph.core.facts.file_change import UndoStarted
from sylph.engine.turn.turn_context import TurnContext
from sylph.engine.undo.change_history import UndoRequest
from sylph.engine.undo.undo import TOPIC, UndoBackend, blocked_error, describe_undo


async def perform_undo(context: TurnContext, undoing: UndoBackend, command: commands.Undo) -> None:
    """The whole undo: the plan, the fact, the files, the fact. One that a crash cut off is finished instead."""
    if context.summary.undoing:
        await finish_undo(context, undoing, actor=command.actor)
        return
    wish = UndoRequest(
        turn=command.turn, call=command.call, files=command.files, force=command.force, redo=command.redo
    )  # fmt: skip
    started = await undoing.plan(context.id, context.summary.workspace, wish)
    if started.left and not started.steps:
        raise blocked_error(started.left)
    await context.emit(started, actor=command.actor)
    await _apply_undo(context, undoing, started, resumed=False, actor=command.actor)


async def finish_undo(context: TurnContext, undoing: UndoBackend, *, actor: str = "sylph") -> None:
    """Finishes an undo that a crash has cut off."""
    if context.summary.undoing and (started := context.latest_undo()):
        await _apply_undo(context, undoing, started, resumed=True, actor=actor)


async def _apply_undo(
    context: TurnContext, undoing: UndoBackend, started: UndoStarted, *, resumed: bool, actor: str
) -> None:
    restored = await undoing.finish(context.id, started, context.summary.workspace, resumed=resumed)
    note = facts.ContextAdded(topic=TOPIC, text=describe_undo(started, restored))
    await context.emit(restored, note, actor=actor)
