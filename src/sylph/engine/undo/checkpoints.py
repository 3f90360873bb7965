"""Checkpoints around calls: what was there is on the disk before a call starts, what it changed is found after."""

import asyncio
import fcntl
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR
from typing import Protocol

import msgspec
from msgspec import Struct

from sylph.core.facts.file_change import FileChange, FilesChanged, FileState, decode_path
from sylph.core.tool import CallAssessment
from sylph.disk.encryption import KeySource, no_key
from sylph.engine.commands.runner_client import RunnerClient, read_journal
from sylph.engine.undo.change_history import DOUBT
from sylph.engine.undo.content_store import FileContentStore, content_digest, make_private_folder
from sylph.engine.undo.trash import SessionTrash
from sylph.engine.undo.workspace_scan import (
    FOLDER,
    CheckpointPolicy,
    PathEntries,
    SafeElsewhere,
    ScanDifference,
    TooManyFiles,
    compare_scans,
)
from sylph.engine.undo.workspace_tracker import SavedScan, WorkspaceTracker, read_scan, write_scan

# Changes in one fact; more of them become more facts.
MAX_CHANGES_PER_FACT = 1000
CLOCK_SLACK_NS = 50_000_000
LIGHT_FILE_SIZE = 256_000


class CheckpointWatcher(Protocol):
    """What the executor needs: it never fails, and says what it could not do in the facts it gives."""

    def warm_up(self, workspace: str) -> None: ...
    async def before_call(self, session: str, call: str, workspace: str, judged: CallAssessment) -> None: ...
    async def after_call(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]: ...
    def collect_leftovers(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]: ...
    def release_call(self, session: str, call: str) -> None: ...
    def busy_workspaces(self, workspace: str, paths: Sequence[str]) -> list[str]: ...


class NoCheckpoints:
    """Where undo is switched off."""

    def warm_up(self, workspace: str) -> None: ...

    async def before_call(self, session: str, call: str, workspace: str, judged: CallAssessment) -> None: ...

    async def after_call(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]:  # noqa: ARG002
        return []

    def collect_leftovers(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]:  # noqa: ARG002
        return []

    def release_call(self, session: str, call: str) -> None: ...

    def busy_workspaces(self, workspace: str, paths: Sequence[str]) -> list[str]:  # noqa: ARG002
        return []


class _OpenCheckpoint(Struct, frozen=True, kw_only=True):
    """A call that runs: where, on what, and what was there before; or why nobody looked."""

    place: WorkspaceTracker
    tops: Sequence[bytes] | None = None
    entries: PathEntries | None = None
    claims: int = 0
    recovered: bool = False
    gap: str = ""


class Checkpoints:
    def __init__(self, folder: Path, rules: CheckpointPolicy, runner: RunnerClient, key: KeySource = no_key) -> None:
        self.folder, self.rules, self._runner = folder, rules, runner
        self.contents = FileContentStore(folder / "contents", key)
        self._places: dict[str, WorkspaceTracker] = {}
        self._open: dict[tuple[str, str], _OpenCheckpoint] = {}
        self._told: set[str] = set()
        self._warming: dict[str, asyncio.Future[None]] = {}
        self._using = -1
        self.taken = False

    def session_trash(self, session: str) -> SessionTrash:
        return SessionTrash(self._runner.folder.parent / "private" / session / "trash")

    def warm_up(self, workspace: str) -> None:
        """A call is on its way: the first look, which reads everything, begins while the model still writes."""
        place = self._tracker_for(workspace)
        running = self._warming.get(workspace)
        if not place.is_known and not place.is_refused and (running is None or running.done()):
            loop = asyncio.get_running_loop()
            self._warming[workspace] = loop.run_in_executor(None, _scan_quietly, place)

    async def before_call(self, session: str, call: str, workspace: str, judged: CallAssessment) -> None:
        place = self._tracker_for(workspace)
        tops = written_paths(place.root, judged)
        if tops == ():
            return
        self._hold_lock()
        self.taken = True
        if _is_light(place, tops):
            took = self._take_checkpoint(session, call, place, tops)
        else:
            took = await asyncio.to_thread(self._take_checkpoint, session, call, place, tops)
        self._open[session, call] = took
        if self.contents.dirty:
            await asyncio.to_thread(self.contents.sync)

    def _take_checkpoint(
        self, session: str, call: str, place: WorkspaceTracker, tops: Sequence[bytes] | None
    ) -> _OpenCheckpoint:
        if tops is None and place.is_refused:
            return _OpenCheckpoint(place=place, gap=self._too_many_gap())
        file = self._checkpoint_file(place, session, call)
        claims = _file_size(self._claims_file(place))
        earlier = read_scan(file, self.contents.key)
        if earlier and tops is not None:
            tops = None if earlier.tops is None else tuple(dict.fromkeys((*earlier.tops, *tops)))
        try:
            entries = place.scan_files(tops)
            if tops is None:
                place.save_entries(entries)
            if earlier:
                entries = _without_new_folders(entries, earlier.to_entries())
            if tops is not None or earlier or not place.link_saved(file):
                saved = SavedScan(
                    place.root, None if tops is None else list(tops), list(entries), list(entries.values())
                )
                write_scan(file, saved, self.contents.key)
        except TooManyFiles:
            return _OpenCheckpoint(place=place, gap=self._too_many_gap())
        except OSError as error:
            return _OpenCheckpoint(place=place, gap=f"no checkpoint could be taken: {error.strerror or error}")
        return _OpenCheckpoint(place=place, tops=tops, entries=entries, claims=claims)

    async def after_call(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]:
        found = self._find_open(session, call, workspace)
        if found is None:
            return []
        if _is_light(found.place, found.tops):
            return self._find_changes(session, call, found, ok=ok)
        return await asyncio.to_thread(self._find_changes, session, call, found, ok=ok)

    def collect_leftovers(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]:
        """What calls changed that a stopped turn leaves behind."""
        found = [(call, opened) for call in calls if (opened := self._find_open(session, call, workspace))]
        return [fact for call, opened in found for fact in self._find_changes(session, call, opened, ok=False)]

    def release_call(self, session: str, call: str) -> None:
        """What the call changed is in the log."""
        if self._open.pop((session, call), None) is None:
            return
        for place in self._places.values():
            self._checkpoint_file(place, session, call).unlink(missing_ok=True)
        if not self._open:
            self._release_lock()

    def busy_workspaces(self, workspace: str, paths: Sequence[str]) -> list[str]:
        """The workspaces in which calls run that would be taken to have changed these: `workspace`, or others of ours.

        Whoever changes them now has to say so, as a call does: by `before`, `after` and `done`.
        """
        places = {each.place for each in self._open.values()}
        near = {os.fsdecode(place.root) for place in places if any(_is_inside(place.root, path) for path in paths)}
        if _has_others(self.folder / "open" / self._tracker_for(workspace).name, ""):
            near.add(os.fsdecode(self._tracker_for(workspace).root))
        return sorted(near)

    def _find_open(self, session: str, call: str, workspace: str) -> _OpenCheckpoint | None:
        """The checkpoint of a call: of this process, or one that a killed process left."""
        if known := self._open.get((session, call)):
            return known
        place = self._tracker_for(workspace)
        saved = read_scan(self._checkpoint_file(place, session, call), self.contents.key)
        if saved is None or saved.root != place.root:
            return None
        self._hold_lock()
        opened = _OpenCheckpoint(place=place, tops=saved.tops, entries=saved.to_entries(), recovered=True)
        self._open[session, call] = opened
        return opened

    def _find_changes(self, session: str, call: str, opened: _OpenCheckpoint, *, ok: bool) -> list[FilesChanged]:
        if opened.entries is None:
            fresh = opened.gap not in self._told
            self._told.add(opened.gap)
            return [FilesChanged(call=call, gaps=(opened.gap,))] if fresh else []
        try:
            now = opened.place.scan_files(opened.tops)
        except (TooManyFiles, OSError) as error:
            why = self._too_many_gap() if isinstance(error, TooManyFiles) else f"{error.strerror or error}"
            return [FilesChanged(call=call, gaps=(f"what it changed could not be found out: {why}",))]
        trash, root = self.session_trash(session), opened.place.root
        safe: SafeElsewhere = lambda path, was: trash.find_file(root, path, was) is not None  # noqa: E731
        found = compare_scans(opened.entries, now, self.rules.each, safe)
        changes = self._exclude_claimed(session, call, opened, found.changes)
        if not opened.recovered:
            return _change_facts(call, ScanDifference(changes, found.gaps))
        sure, unsure = self._split_by_certainty(session, call, opened, now, changes, ok=ok)
        return [
            *_change_facts(call, ScanDifference(sure, found.gaps)),
            *_change_facts(call, ScanDifference(unsure, []), DOUBT),
        ]

    def _split_by_certainty(
        self,
        session: str,
        call: str,
        opened: _OpenCheckpoint,
        now: PathEntries,
        changes: Sequence[FileChange],
        *,
        ok: bool,
    ) -> tuple[list[FileChange], list[FileChange]]:
        """What a call of a killed process did for sure, and what it may have done. What came later is neither."""
        if opened.tops is not None:
            # The tool has recognised what it was about to write, or it has not.
            return (list(changes), []) if ok else ([], list(changes))
        end = self._command_end(session, call)
        if end is None:
            return [], list(changes)
        sure, unsure = list[FileChange](), list[FileChange]()
        for change in changes:
            path = decode_path(change.path)
            entry = now.get(path)
            if entry is not None and entry.ctime:
                sure += [change] if entry.ctime <= end else []
            else:
                (sure if _folder_mtime(opened.place.root, path) <= end else unsure).append(change)
        return sure, unsure

    def _command_end(self, session: str, call: str) -> int | None:
        """When the call's command ended, if its journal tells."""
        name = self._runner.newest_journal(f"{session}.{call}")
        journal = self._runner.folder / f"{name}.run"
        story = read_journal(journal)
        if story.intent is None or story.ended is None or story.intent.job:
            return None
        # The end is the last thing that its runner writes.
        return journal.stat().st_mtime_ns + CLOCK_SLACK_NS

    def _exclude_claimed(
        self, session: str, call: str, opened: _OpenCheckpoint, changes: list[FileChange]
    ) -> list[FileChange]:
        """Without what another call in the same workspace has claimed meanwhile; what is ours is claimed in turn."""
        key, place = f"{session}.{call}", opened.place
        claims = self._claims_file(place)
        if _file_size(claims) > opened.claims:
            theirs = _read_claims(claims, opened.claims, key)
            changes = [
                each for each in changes if (name := _claim_name(each)) not in theirs or theirs[name] != each.after
            ]
        if changes and _has_others(self.folder / "open" / place.name, key):
            make_private_folder(claims.parent)
            lines = [msgspec.json.encode((key, _claim_name(change), change.after)) + b"\n" for change in changes]
            with os.fdopen(os.open(claims, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab") as file:
                file.write(b"".join(lines))
        return changes

    def _tracker_for(self, workspace: str) -> WorkspaceTracker:
        if workspace not in self._places:
            root = os.path.realpath(os.fsencode(workspace))
            self._places[workspace] = WorkspaceTracker(root, self.folder, self.rules, self.contents)
        return self._places[workspace]

    def _checkpoint_file(self, place: WorkspaceTracker, session: str, call: str) -> Path:
        return self.folder / "open" / place.name / f"{session}.{call}"

    def _claims_file(self, place: WorkspaceTracker) -> Path:
        return self.folder / "claims" / place.name

    def _too_many_gap(self) -> str:
        return f"more than {self.rules.files:,} files: what commands change here is not covered (undo.max_files)"

    def _hold_lock(self) -> None:
        """While calls are open, nothing is swept."""
        if self._using >= 0:
            return
        make_private_folder(self.folder)
        self._using = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._using, fcntl.LOCK_SH)

    def _release_lock(self) -> None:
        if self._using >= 0:
            os.close(self._using)
            self._using = -1

    def close(self) -> None:
        self._release_lock()


def written_paths(root: bytes, judged: CallAssessment) -> tuple[bytes, ...] | None:
    """Where a call will change something: below these paths; None for anywhere, () for nowhere in the workspace."""
    if judged.commands or not (judged.writes or judged.hosts):
        return None
    tops: dict[bytes, None] = {}
    for path in map(os.fsencode, judged.writes):
        if path == root:
            return None
        if path.startswith(root + b"/"):
            tops[_topmost_missing(root, path)[len(root) + 1 :]] = None
    return tuple(top for top in tops if b".git" not in top.split(b"/"))


def _topmost_missing(root: bytes, path: bytes) -> bytes:
    """The path, or the first folder on the way to it that is not there yet."""
    while (parent := os.path.dirname(path)) != root and not os.path.lexists(parent):
        path = parent
    return path


def _without_new_folders(entries: PathEntries, earlier: PathEntries) -> PathEntries:
    """For a call that is made once more after a kill: folders that it may have made already are its own."""
    return {path: entry for path, entry in entries.items() if entry.kind != FOLDER or path in earlier}


def _change_facts(call: str, found: ScanDifference, doubt: str = "") -> list[FilesChanged]:
    changes, gaps = found.changes, tuple(found.gaps[:MAX_CHANGES_PER_FACT])
    if not changes and not gaps:
        return []
    parts = [tuple(changes[at : at + MAX_CHANGES_PER_FACT]) for at in range(0, len(changes), MAX_CHANGES_PER_FACT)] or [
        ()
    ]
    first = FilesChanged(call=call, changes=parts[0], gaps=gaps, doubt=doubt)
    return [first, *(FilesChanged(call=call, changes=part, doubt=doubt) for part in parts[1:])]


def _is_light(place: WorkspaceTracker, tops: Sequence[bytes] | None) -> bool:
    """Whether a look takes no longer than asking a thread for it."""
    if tops is None:
        return place.is_small
    return all(_is_small_file(os.path.join(place.root, top)) for top in tops)


def _is_small_file(path: bytes) -> bool:
    try:
        stat = os.lstat(path)
    except OSError:
        return True
    return not S_ISDIR(stat.st_mode) and stat.st_size <= LIGHT_FILE_SIZE


def _claim_name(change: FileChange) -> str:
    """What a path is claimed by: its own name may tell too much."""
    return content_digest(decode_path(change.path)).hex()


def _read_claims(claims: Path, offset: int, key: str) -> dict[str, FileState | None]:
    with claims.open("rb") as file:
        file.seek(offset)
        rows = [row for row in file.read().split(b"\n") if row]
    found: dict[str, FileState | None] = {}
    for row in rows:
        with suppress(msgspec.DecodeError):
            by, path, after = msgspec.json.decode(row, type=tuple[str, str, FileState | None])
            if by != key:
                found[path] = after
    return found


def _is_inside(root: bytes, path: str) -> bool:
    return os.fsencode(path).startswith(root + b"/")


def _has_others(folder: Path, key: str) -> bool:
    try:
        return any(name != key for name in os.listdir(folder))
    except FileNotFoundError:
        return False


def _folder_mtime(root: bytes, path: bytes) -> int:
    """When something was last made or removed beside a path, or beside the folder it was in."""
    while path := path.rpartition(b"/")[0]:
        with suppress(OSError):
            return os.lstat(os.path.join(root, path)).st_mtime_ns
    return os.lstat(root).st_mtime_ns


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _scan_quietly(place: WorkspaceTracker) -> None:
    """A look ahead; what is wrong with it will be said when it is needed."""
    with suppress(TooManyFiles, OSError):
        place.scan_files()
