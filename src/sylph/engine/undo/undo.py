"""Undo: planned from what the log tells, done on the files, told in facts that a crash in between cannot confuse."""

import asyncio
import os
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sylph.core.errors import UserError
from sylph.core.facts.file_change import FilesRestored, SkippedFile, UndoStarted, display_path
from sylph.core.text.formatting import count_noun
from sylph.engine.log.store import EventLog
from sylph.engine.undo import change_history
from sylph.engine.undo.change_history import ChangeHistory, FactRestorer, UndoRequest
from sylph.engine.undo.checkpoints import Checkpoints, CheckpointWatcher, NoCheckpoints
from sylph.engine.undo.restore import CHANGED_SINCE, TOO_LARGE, FileRestorer

TOPIC = "undo"
MAX_NAMED = 30
FORCE_ADVICE = "--force restores them too; what is there now is kept, and `sylph undo --redo` brings it back."

LARGE_FILE_ADVICE = "--force also puts away what is too large to be kept, for good; undo.max_file_mb is the limit."
NO_FORCE_ADVICE = "`sylph undo --turn T` goes back to before an earlier turn; what was not kept stays as it is."


class UndoBackend(Protocol):
    """The two halves of an undo, with the fact `undo.started` between them."""

    async def plan(self, session: str, workspace: str, wish: UndoRequest) -> UndoStarted: ...
    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored: ...


class UndoSupport(Struct, frozen=True):
    """What a runtime keeps of files: checkpoints around calls, and the way back."""

    checkpoints: CheckpointWatcher
    backend: UndoBackend


class UndoService:
    def __init__(self, log: EventLog, kept: Checkpoints, unveiled: FactRestorer = lambda fact: fact) -> None:
        self._log, self._kept, self._contents, self._unveiled = log, kept, kept.contents, unveiled

    async def plan(self, session: str, workspace: str, wish: UndoRequest) -> UndoStarted:
        """What would be done now. Raises UserError where that is nothing."""
        known = change_history.load_history(self._log, session, self._unveiled)
        change_history.require_existing(self._log, session, wish)
        return await asyncio.to_thread(self._plan_undo, known, self._file_restorer(session, workspace), wish)

    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored:
        restored, left = await asyncio.to_thread(self._file_restorer(session, workspace).apply_steps, started.steps)
        self._contents.sync()
        return FilesRestored(undo=started.id, restored=tuple(restored), left=(*started.left, *left), resumed=resumed)

    def _plan_undo(self, known: ChangeHistory, workshop: FileRestorer, wish: UndoRequest) -> UndoStarted:
        if wish.redo:
            return self._plan_redo(known, workshop, wish)
        meant = change_history.select_changes(known, wish)
        goals = change_history.plan_targets(meant, force=wish.force)
        steps, left = workshop.plan_steps(goals, force=wish.force)
        self._contents.sync()
        calls = tuple(dict.fromkeys(made.call for made in meant))
        return UndoStarted(
            id=_next_undo_id(known), turn=meant[0].turn, calls=calls, steps=tuple(steps), left=tuple(left)
        )

    def _plan_redo(self, known: ChangeHistory, workshop: FileRestorer, wish: UndoRequest) -> UndoStarted:
        """The newest undo is taken back, or what an earlier redo has left of it, as far as anything can be done."""
        stuck: UndoStarted | None = None
        for last in known.redoable:
            steps, left = workshop.plan_steps(
                change_history.plan_redo_targets(known.remaining_steps(last), wish.files), force=wish.force
            )
            self._contents.sync()
            plan = UndoStarted(
                id=_next_undo_id(known),
                turn=last.turn,
                calls=last.calls,
                steps=tuple(steps),
                left=tuple(left),
                redo=last.id,
            )
            if steps or last.id not in known.redone:
                return plan
            stuck = stuck or (plan if left else None)
        if stuck:
            return stuck
        raise UserError("There is no undo to take back.", kind="nothing_to_undo")

    def _file_restorer(self, session: str, workspace: str) -> FileRestorer:
        root = os.path.realpath(os.fsencode(workspace))
        if not os.path.isdir(root):
            raise UserError(f"There is no folder {workspace} any more.", kind="no_workspace")
        return FileRestorer(root, self._contents, self._kept.rules, self._kept.session_trash(session))


class NoUndo:
    """Where undo is switched off."""

    async def plan(self, session: str, workspace: str, wish: UndoRequest) -> UndoStarted:  # noqa: ARG002
        raise UserError("Undo is switched off.", kind="nothing_to_undo", next=["sylph config set undo.enabled true"])

    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored:  # noqa: ARG002
        raise UserError("Undo is switched off.", kind="nothing_to_undo", next=["sylph config set undo.enabled true"])


UNDO_DISABLED = UndoSupport(NoCheckpoints(), NoUndo())


def describe_undo(started: UndoStarted, restored: FilesRestored) -> str:
    """What the model is told."""
    names = ", ".join(display_path(path) for path in restored.restored[:MAX_NAMED]) or "none"
    more = f" and {len(restored.restored) - MAX_NAMED} more" if len(restored.restored) > MAX_NAMED else ""
    calls = ", ".join(started.calls[:MAX_NAMED])
    if started.redo:
        text = f"The user took an undo back: what {calls} had done to these files is there again: {names}{more}."
    else:
        text = f"The user undid what {calls} had done. These files are as they were before it: {names}{more}."
    if restored.left:
        text += " Not restored: " + ", ".join(display_path(each.path) for each in restored.left[:MAX_NAMED]) + "."
    return f"{text} Read files again before you change them, and do not repeat the changes unless asked to."


def blocked_error(left: Sequence[SkippedFile]) -> UserError:
    first = f"{display_path(left[0].path)}: {left[0].why}"
    more = f" (and {count_noun(len(left) - 1, 'more path')})" if len(left) > 1 else ""
    return UserError(f"Nothing was undone. {first}{more}.", kind="undo_blocked", next=undo_advice(left))


def undo_advice(left: Sequence[SkippedFile]) -> list[str]:
    """What can be done about paths that were left; force is only spoken of where it helps."""
    whys = [each.why for each in left]
    helps = any(
        why in (CHANGED_SINCE, change_history.DOUBT) or why.startswith(change_history.CHANGED_BETWEEN) for why in whys
    )
    said = ([FORCE_ADVICE] if helps else []) + ([LARGE_FILE_ADVICE] if TOO_LARGE in whys else [])
    return said or [NO_FORCE_ADVICE]


def _next_undo_id(known: ChangeHistory) -> str:
    return f"u{len(known.undos) + 1}"
