"""Undo: planned from what the log tells, done on the files, told in facts that a crash in between cannot confuse."""

import asyncio
import os
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sylph.core import commands, facts
from sylph.core.changes import FileLeft, FilesRestored, UndoStarted, shown
from sylph.core.errors import UserError
from sylph.core.text import count
from sylph.engine.floor import Floor
from sylph.engine.log import Log
from sylph.engine.undo import ledger
from sylph.engine.undo.checkpoints import Checkpoints, Unwatched, Watcher
from sylph.engine.undo.ledger import Ledger, Unveiled, Wish
from sylph.engine.undo.restore import CHANGED, LARGE, Workshop

TOPIC = "undo"
NAMED = 30
FORCE = "--force restores them too; what is there now is kept, and `sylph undo --redo` brings it back."

FOR_GOOD = "--force also puts away what is too large to be kept, for good; undo.max_file_mb is the limit."
NO_HELP = "`sylph undo --turn T` goes back to before an earlier turn; what was not kept stays as it is."


class Undoing(Protocol):
    """The two halves of an undo, with the fact `undo.started` between them."""

    async def plan(self, session: str, workspace: str, wish: Wish) -> UndoStarted: ...
    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored: ...


class Keeper(Struct, frozen=True):
    """What a runtime keeps of files: checkpoints around calls, and the way back."""

    watch: Watcher
    undoing: Undoing


class Restorer:
    def __init__(self, log: Log, kept: Checkpoints, unveiled: Unveiled = lambda fact: fact) -> None:
        self._log, self._kept, self._contents, self._unveiled = log, kept, kept.contents, unveiled

    async def plan(self, session: str, workspace: str, wish: Wish) -> UndoStarted:
        """What would be done now. Raises UserError where that is nothing."""
        known = ledger.read(self._log, session, self._unveiled)
        ledger.must_exist(self._log, session, wish)
        return await asyncio.to_thread(self._plan, known, self._workshop(session, workspace), wish)

    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored:
        restored, left = await asyncio.to_thread(self._workshop(session, workspace).apply, started.steps)
        self._contents.sync()
        return FilesRestored(undo=started.id, restored=tuple(restored), left=(*started.left, *left), resumed=resumed)

    def _plan(self, known: Ledger, workshop: Workshop, wish: Wish) -> UndoStarted:
        if wish.redo:
            return self._redo(known, workshop, wish)
        meant = ledger.chosen(known, wish)
        goals = ledger.targets(meant, force=wish.force)
        steps, left = workshop.steps(goals, force=wish.force)
        self._contents.sync()
        calls = tuple(dict.fromkeys(made.call for made in meant))
        return UndoStarted(id=_next(known), turn=meant[0].turn, calls=calls, steps=tuple(steps), left=tuple(left))

    def _redo(self, known: Ledger, workshop: Workshop, wish: Wish) -> UndoStarted:
        """The newest undo is taken back, or what an earlier redo has left of it, as far as anything can be done."""
        stuck: UndoStarted | None = None
        for last in known.redoable:
            steps, left = workshop.steps(ledger.retargets(known.rest(last), wish.files), force=wish.force)
            self._contents.sync()
            plan = UndoStarted(
                id=_next(known), turn=last.turn, calls=last.calls, steps=tuple(steps), left=tuple(left), redo=last.id
            )
            if steps or last.id not in known.redone:
                return plan
            stuck = stuck or (plan if left else None)
        if stuck:
            return stuck
        raise UserError("There is no undo to take back.", kind="nothing_to_undo")

    def _workshop(self, session: str, workspace: str) -> Workshop:
        root = os.path.realpath(os.fsencode(workspace))
        if not os.path.isdir(root):
            raise UserError(f"There is no folder {workspace} any more.", kind="no_workspace")
        return Workshop(root, self._contents, self._kept.rules, self._kept.trash(session))


class NoUndo:
    """Where undo is switched off."""

    async def plan(self, session: str, workspace: str, wish: Wish) -> UndoStarted:  # noqa: ARG002
        raise UserError("Undo is switched off.", kind="nothing_to_undo", next=["sylph config set undo.enabled true"])

    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored:  # noqa: ARG002
        raise UserError("Undo is switched off.", kind="nothing_to_undo", next=["sylph config set undo.enabled true"])


NOTHING_KEPT = Keeper(Unwatched(), NoUndo())


async def perform(floor: Floor, undoing: Undoing, command: commands.Undo) -> None:
    """The whole undo: the plan, the fact, the files, the fact. One that a crash cut off is finished instead."""
    if floor.summary.undoing:
        await finish(floor, undoing, actor=command.actor)
        return
    wish = Wish(
        turn=command.turn, call=command.call, files=command.files, force=command.force, redo=command.redo
    )  # fmt: skip
    started = await undoing.plan(floor.id, floor.summary.workspace, wish)
    if started.left and not started.steps:
        raise blocked(started.left)
    await floor.emit(started, actor=command.actor)
    await _finish(floor, undoing, started, resumed=False, actor=command.actor)


async def finish(floor: Floor, undoing: Undoing, *, actor: str = "sylph") -> None:
    """Finishes an undo that a crash has cut off."""
    if floor.summary.undoing and (started := floor.undo_begun()):
        await _finish(floor, undoing, started, resumed=True, actor=actor)


async def _finish(floor: Floor, undoing: Undoing, started: UndoStarted, *, resumed: bool, actor: str) -> None:
    restored = await undoing.finish(floor.id, started, floor.summary.workspace, resumed=resumed)
    note = facts.ContextAdded(topic=TOPIC, text=told(started, restored))
    await floor.emit(restored, note, actor=actor)


def told(started: UndoStarted, restored: FilesRestored) -> str:
    """What the model is told."""
    names = ", ".join(shown(path) for path in restored.restored[:NAMED]) or "none"
    more = f" and {len(restored.restored) - NAMED} more" if len(restored.restored) > NAMED else ""
    calls = ", ".join(started.calls[:NAMED])
    if started.redo:
        text = f"The user took an undo back: what {calls} had done to these files is there again: {names}{more}."
    else:
        text = f"The user undid what {calls} had done. These files are as they were before it: {names}{more}."
    if restored.left:
        text += " Not restored: " + ", ".join(shown(each.path) for each in restored.left[:NAMED]) + "."
    return f"{text} Read files again before you change them, and do not repeat the changes unless asked to."


def blocked(left: Sequence[FileLeft]) -> UserError:
    first = f"{shown(left[0].path)}: {left[0].why}"
    more = f" (and {count(len(left) - 1, 'more path')})" if len(left) > 1 else ""
    return UserError(f"Nothing was undone. {first}{more}.", kind="undo_blocked", next=advice(left))


def advice(left: Sequence[FileLeft]) -> list[str]:
    """What can be done about paths that were left; force is only spoken of where it helps."""
    whys = [each.why for each in left]
    helps = any(why in (CHANGED, ledger.DOUBT) or why.startswith(ledger.BETWEEN) for why in whys)
    said = ([FORCE] if helps else []) + ([FOR_GOOD] if LARGE in whys else [])
    return said or [NO_HELP]


def _next(known: Ledger) -> str:
    return f"u{len(known.undos) + 1}"
