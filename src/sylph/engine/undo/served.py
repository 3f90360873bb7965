"""Checkpoints and undo as they were: every change comes from a recording, and no file is touched."""

from collections.abc import Iterable, Sequence

from sylph.core import facts
from sylph.core.changes import FilesChanged, FilesRestored, UndoStarted
from sylph.core.tool import Judged
from sylph.engine.tape import Tape
from sylph.engine.undo.ledger import Wish
from sylph.engine.undo.undo import Keeper


class ServedWatcher:
    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def warm(self, workspace: str) -> None: ...

    async def before(self, session: str, call: str, workspace: str, judged: Judged) -> None: ...

    async def after(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]:  # noqa: ARG002
        """What stands between here and the call's result."""
        found: list[FilesChanged] = []
        for event in self._tape.ahead:
            match event.body:
                case FilesChanged(call=of) as body if of == call:
                    found.append(body)
                case facts.ToolFinished(call=of) if of == call:
                    return found
                case _:
                    break
        return found

    def left(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]:  # noqa: ARG002
        """What stands before the end of the turn."""
        found: list[FilesChanged] = []
        for event in self._tape.ahead:
            match event.body:
                case FilesChanged() as body:
                    found.append(body)
                case facts.StateChanged():
                    break
                case _:
                    pass
        return found

    def done(self, session: str, call: str) -> None: ...

    def busy(self, workspace: str, paths: Sequence[str]) -> list[str]:  # noqa: ARG002
        return []


class ServedUndo:
    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def plan(self, session: str, workspace: str, wish: Wish) -> UndoStarted:  # noqa: ARG002 - as it was planned
        return next(event.body for event in self._tape.ahead if isinstance(event.body, UndoStarted))

    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored:  # noqa: ARG002
        found = (event.body for event in self._tape.ahead if isinstance(event.body, FilesRestored))
        return next(found, FilesRestored(undo=started.id))


def served(tape: Tape) -> Keeper:
    return Keeper(ServedWatcher(tape), ServedUndo(tape))
