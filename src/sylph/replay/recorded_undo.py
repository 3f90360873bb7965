"""Checkpoints and undo as they were: every change comes from a recording, and no file is touched."""

from collections.abc import Iterable, Sequence

from sylph.core import facts
from sylph.core.facts.file_change import FilesChanged, FilesRestored, UndoStarted
from sylph.core.tool import CallAssessment
from sylph.engine.undo.change_history import UndoRequest
from sylph.engine.undo.undo import UndoSupport
from sylph.replay.playback import Playback


class RecordedCheckpoints:
    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    def warm_up(self, workspace: str) -> None: ...

    async def before_call(self, session: str, call: str, workspace: str, judged: CallAssessment) -> None: ...

    async def after_call(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]:  # noqa: ARG002
        """What stands between here and the call's result."""
        found: list[FilesChanged] = []
        for event in self._playback.upcoming:
            match event.body:
                case FilesChanged(call=of) as body if of == call:
                    found.append(body)
                case facts.ToolFinished(call=of) if of == call:
                    return found
                case _:
                    break
        return found

    def collect_leftovers(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]:  # noqa: ARG002
        """What stands before the end of the turn."""
        found: list[FilesChanged] = []
        for event in self._playback.upcoming:
            match event.body:
                case FilesChanged() as body:
                    found.append(body)
                case facts.StateChanged():
                    break
                case _:
                    pass
        return found

    def release_call(self, session: str, call: str) -> None: ...

    def busy_workspaces(self, workspace: str, paths: Sequence[str]) -> list[str]:  # noqa: ARG002
        return []


class RecordedUndo:
    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    async def plan(self, session: str, workspace: str, wish: UndoRequest) -> UndoStarted:  # noqa: ARG002 - as it was planned
        return next(event.body for event in self._playback.upcoming if isinstance(event.body, UndoStarted))

    async def finish(self, session: str, started: UndoStarted, workspace: str, *, resumed: bool) -> FilesRestored:  # noqa: ARG002
        found = (event.body for event in self._playback.upcoming if isinstance(event.body, FilesRestored))
        return next(found, FilesRestored(undo=started.id))


def build_recorded_undo(playback: Playback) -> UndoSupport:
    return UndoSupport(RecordedCheckpoints(playback), RecordedUndo(playback))
