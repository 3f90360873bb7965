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

from sylph.core.changes import FileChange, FilesChanged, FileState, bytes_of
from sylph.core.tool import Judged
from sylph.engine.runs import Runner, read_story
from sylph.engine.sealed import Key, unsealed
from sylph.engine.undo.contents import Contents, digest_of, private
from sylph.engine.undo.ledger import DOUBT
from sylph.engine.undo.place import Place, Saved, read, write
from sylph.engine.undo.trash import Trash
from sylph.engine.undo.view import FOLDER, Difference, Entries, Rules, Safe, TooMany, compare

# Changes in one fact; more of them become more facts.
MANY = 1000
SLACK = 50_000_000
LIGHT = 256_000


class Watcher(Protocol):
    """What the executor needs: it never fails, and says what it could not do in the facts it gives."""

    def warm(self, workspace: str) -> None: ...
    async def before(self, session: str, call: str, workspace: str, judged: Judged) -> None: ...
    async def after(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]: ...
    def left(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]: ...
    def done(self, session: str, call: str) -> None: ...
    def busy(self, workspace: str, paths: Sequence[str]) -> list[str]: ...


class Unwatched:
    """Where undo is switched off."""

    def warm(self, workspace: str) -> None: ...

    async def before(self, session: str, call: str, workspace: str, judged: Judged) -> None: ...

    async def after(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]:  # noqa: ARG002
        return []

    def left(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]:  # noqa: ARG002
        return []

    def done(self, session: str, call: str) -> None: ...

    def busy(self, workspace: str, paths: Sequence[str]) -> list[str]:  # noqa: ARG002
        return []


class _Open(Struct, frozen=True, kw_only=True):
    """A call that runs: where, on what, and what was there before; or why nobody looked."""

    place: Place
    tops: Sequence[bytes] | None = None
    entries: Entries | None = None
    claims: int = 0
    recovered: bool = False
    gap: str = ""


class Checkpoints:
    def __init__(self, folder: Path, rules: Rules, runner: Runner, key: Key = unsealed) -> None:
        self.folder, self.rules, self._runner = folder, rules, runner
        self.contents = Contents(folder / "contents", key)
        self._places: dict[str, Place] = {}
        self._open: dict[tuple[str, str], _Open] = {}
        self._told: set[str] = set()
        self._warming: dict[str, asyncio.Future[None]] = {}
        self._using = -1
        self.taken = False

    def trash(self, session: str) -> Trash:
        return Trash(self._runner.folder.parent / "private" / session / "trash")

    def warm(self, workspace: str) -> None:
        """A call is on its way: the first look, which reads everything, begins while the model still writes."""
        place = self._place(workspace)
        running = self._warming.get(workspace)
        if not place.known and not place.refused and (running is None or running.done()):
            loop = asyncio.get_running_loop()
            self._warming[workspace] = loop.run_in_executor(None, _quietly, place)

    async def before(self, session: str, call: str, workspace: str, judged: Judged) -> None:
        place = self._place(workspace)
        tops = named(place.root, judged)
        if tops == ():
            return
        self._use()
        self.taken = True
        if _light(place, tops):
            took = self._take(session, call, place, tops)
        else:
            took = await asyncio.to_thread(self._take, session, call, place, tops)
        self._open[session, call] = took
        if self.contents.dirty:
            await asyncio.to_thread(self.contents.sync)

    def _take(self, session: str, call: str, place: Place, tops: Sequence[bytes] | None) -> _Open:
        if tops is None and place.refused:
            return _Open(place=place, gap=self._too_many())
        file = self._file(place, session, call)
        claims = _size(self._claims(place))
        earlier = read(file, self.contents.key)
        if earlier and tops is not None:
            tops = None if earlier.tops is None else tuple(dict.fromkeys((*earlier.tops, *tops)))
        try:
            entries = place.look(tops)
            if tops is None:
                place.keep(entries)
            if earlier:
                entries = _unmade(entries, earlier.view())
            if tops is not None or earlier or not place.link(file):
                saved = Saved(place.root, None if tops is None else list(tops), list(entries), list(entries.values()))
                write(file, saved, self.contents.key)
        except TooMany:
            return _Open(place=place, gap=self._too_many())
        except OSError as error:
            return _Open(place=place, gap=f"no checkpoint could be taken: {error.strerror or error}")
        return _Open(place=place, tops=tops, entries=entries, claims=claims)

    async def after(self, session: str, call: str, workspace: str, *, ok: bool) -> list[FilesChanged]:
        found = self._find(session, call, workspace)
        if found is None:
            return []
        if _light(found.place, found.tops):
            return self._changed(session, call, found, ok=ok)
        return await asyncio.to_thread(self._changed, session, call, found, ok=ok)

    def left(self, session: str, calls: Iterable[str], workspace: str) -> list[FilesChanged]:
        """What calls changed that a stopped turn leaves behind."""
        found = [(call, opened) for call in calls if (opened := self._find(session, call, workspace))]
        return [fact for call, opened in found for fact in self._changed(session, call, opened, ok=False)]

    def done(self, session: str, call: str) -> None:
        """What the call changed is in the log."""
        if self._open.pop((session, call), None) is None:
            return
        for place in self._places.values():
            self._file(place, session, call).unlink(missing_ok=True)
        if not self._open:
            self._unuse()

    def busy(self, workspace: str, paths: Sequence[str]) -> list[str]:
        """The workspaces in which calls run that would be taken to have changed these: `workspace`, or others of ours.

        Whoever changes them now has to say so, as a call does: by `before`, `after` and `done`.
        """
        places = {each.place for each in self._open.values()}
        near = {os.fsdecode(place.root) for place in places if any(_in(place.root, path) for path in paths)}
        if _others(self.folder / "open" / self._place(workspace).name, ""):
            near.add(os.fsdecode(self._place(workspace).root))
        return sorted(near)

    def _find(self, session: str, call: str, workspace: str) -> _Open | None:
        """The checkpoint of a call: of this process, or one that a killed process left."""
        if known := self._open.get((session, call)):
            return known
        place = self._place(workspace)
        saved = read(self._file(place, session, call), self.contents.key)
        if saved is None or saved.root != place.root:
            return None
        self._use()
        opened = _Open(place=place, tops=saved.tops, entries=saved.view(), recovered=True)
        self._open[session, call] = opened
        return opened

    def _changed(self, session: str, call: str, opened: _Open, *, ok: bool) -> list[FilesChanged]:
        if opened.entries is None:
            fresh = opened.gap not in self._told
            self._told.add(opened.gap)
            return [FilesChanged(call=call, gaps=(opened.gap,))] if fresh else []
        try:
            now = opened.place.look(opened.tops)
        except (TooMany, OSError) as error:
            why = self._too_many() if isinstance(error, TooMany) else f"{error.strerror or error}"
            return [FilesChanged(call=call, gaps=(f"what it changed could not be found out: {why}",))]
        trash, root = self.trash(session), opened.place.root
        safe: Safe = lambda path, was: trash.find(root, path, was) is not None  # noqa: E731
        found = compare(opened.entries, now, self.rules.each, safe)
        changes = self._own(session, call, opened, found.changes)
        if not opened.recovered:
            return _facts(call, Difference(changes, found.gaps))
        sure, unsure = self._sorted(session, call, opened, now, changes, ok=ok)
        return [*_facts(call, Difference(sure, found.gaps)), *_facts(call, Difference(unsure, []), DOUBT)]

    def _sorted(
        self, session: str, call: str, opened: _Open, now: Entries, changes: Sequence[FileChange], *, ok: bool
    ) -> tuple[list[FileChange], list[FileChange]]:
        """What a call of a killed process did for sure, and what it may have done. What came later is neither."""
        if opened.tops is not None:
            # The tool has recognised what it was about to write, or it has not.
            return (list(changes), []) if ok else ([], list(changes))
        end = self._ended(session, call)
        if end is None:
            return [], list(changes)
        sure, unsure = list[FileChange](), list[FileChange]()
        for change in changes:
            path = bytes_of(change.path)
            entry = now.get(path)
            if entry is not None and entry.ctime:
                sure += [change] if entry.ctime <= end else []
            else:
                (sure if _touched(opened.place.root, path) <= end else unsure).append(change)
        return sure, unsure

    def _ended(self, session: str, call: str) -> int | None:
        """When the call's command ended, if its journal tells."""
        name = self._runner.newest(f"{session}.{call}")
        journal = self._runner.folder / f"{name}.run"
        story = read_story(journal)
        if story.intent is None or story.ended is None or story.intent.job:
            return None
        # The end is the last thing that its runner writes.
        return journal.stat().st_mtime_ns + SLACK

    def _own(self, session: str, call: str, opened: _Open, changes: list[FileChange]) -> list[FileChange]:
        """Without what another call in the same workspace has claimed meanwhile; what is ours is claimed in turn."""
        key, place = f"{session}.{call}", opened.place
        claims = self._claims(place)
        if _size(claims) > opened.claims:
            theirs = _claimed(claims, opened.claims, key)
            changes = [each for each in changes if (name := _name(each)) not in theirs or theirs[name] != each.after]
        if changes and _others(self.folder / "open" / place.name, key):
            private(claims.parent)
            lines = [msgspec.json.encode((key, _name(change), change.after)) + b"\n" for change in changes]
            with os.fdopen(os.open(claims, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab") as file:
                file.write(b"".join(lines))
        return changes

    def _place(self, workspace: str) -> Place:
        if workspace not in self._places:
            root = os.path.realpath(os.fsencode(workspace))
            self._places[workspace] = Place(root, self.folder, self.rules, self.contents)
        return self._places[workspace]

    def _file(self, place: Place, session: str, call: str) -> Path:
        return self.folder / "open" / place.name / f"{session}.{call}"

    def _claims(self, place: Place) -> Path:
        return self.folder / "claims" / place.name

    def _too_many(self) -> str:
        return f"more than {self.rules.files:,} files: what commands change here is not covered (undo.max_files)"

    def _use(self) -> None:
        """While calls are open, nothing is swept."""
        if self._using >= 0:
            return
        private(self.folder)
        self._using = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._using, fcntl.LOCK_SH)

    def _unuse(self) -> None:
        if self._using >= 0:
            os.close(self._using)
            self._using = -1

    def close(self) -> None:
        self._unuse()


def named(root: bytes, judged: Judged) -> tuple[bytes, ...] | None:
    """Where a call will change something: below these paths; None for anywhere, () for nowhere in the workspace."""
    if judged.commands or not (judged.writes or judged.hosts):
        return None
    tops: dict[bytes, None] = {}
    for path in map(os.fsencode, judged.writes):
        if path == root:
            return None
        if path.startswith(root + b"/"):
            tops[_topmost(root, path)[len(root) + 1 :]] = None
    return tuple(top for top in tops if b".git" not in top.split(b"/"))


def _topmost(root: bytes, path: bytes) -> bytes:
    """The path, or the first folder on the way to it that is not there yet."""
    while (parent := os.path.dirname(path)) != root and not os.path.lexists(parent):
        path = parent
    return path


def _unmade(entries: Entries, earlier: Entries) -> Entries:
    """For a call that is made once more after a kill: folders that it may have made already are its own."""
    return {path: entry for path, entry in entries.items() if entry.kind != FOLDER or path in earlier}


def _facts(call: str, found: Difference, doubt: str = "") -> list[FilesChanged]:
    changes, gaps = found.changes, tuple(found.gaps[:MANY])
    if not changes and not gaps:
        return []
    parts = [tuple(changes[at : at + MANY]) for at in range(0, len(changes), MANY)] or [()]
    first = FilesChanged(call=call, changes=parts[0], gaps=gaps, doubt=doubt)
    return [first, *(FilesChanged(call=call, changes=part, doubt=doubt) for part in parts[1:])]


def _light(place: Place, tops: Sequence[bytes] | None) -> bool:
    """Whether a look takes no longer than asking a thread for it."""
    if tops is None:
        return place.small
    return all(_small(os.path.join(place.root, top)) for top in tops)


def _small(path: bytes) -> bool:
    try:
        stat = os.lstat(path)
    except OSError:
        return True
    return not S_ISDIR(stat.st_mode) and stat.st_size <= LIGHT


def _name(change: FileChange) -> str:
    """What a path is claimed by: its own name may tell too much."""
    return digest_of(bytes_of(change.path)).hex()


def _claimed(claims: Path, offset: int, key: str) -> dict[str, FileState | None]:
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


def _in(root: bytes, path: str) -> bool:
    return os.fsencode(path).startswith(root + b"/")


def _others(folder: Path, key: str) -> bool:
    try:
        return any(name != key for name in os.listdir(folder))
    except FileNotFoundError:
        return False


def _touched(root: bytes, path: bytes) -> int:
    """When something was last made or removed beside a path, or beside the folder it was in."""
    while path := path.rpartition(b"/")[0]:
        with suppress(OSError):
            return os.lstat(os.path.join(root, path)).st_mtime_ns
    return os.lstat(root).st_mtime_ns


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _quietly(place: Place) -> None:
    """A look ahead; what is wrong with it will be said when it is needed."""
    with suppress(TooMany, OSError):
        place.look()
