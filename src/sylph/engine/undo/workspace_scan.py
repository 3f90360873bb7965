"""A view of a workspace: what is at every path, looked at cheaply; only what changed since the last look is read."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from stat import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, S_IMODE
from typing import NamedTuple

from msgspec import Struct, field

from sylph.core.facts.file_change import FileChange, FileState, display_path, encode_path
from sylph.engine.undo.content_store import FileContentStore, content_digest

FILE, LINK, FOLDER, OTHER, CLOSED = "file", "link", "folder", "other", "closed"
# A file that changed so shortly before it was read may change once more without a new time: it is read again.
FINE_TICK, COARSE_TICK = 20_000_000, 2_000_000_000
GIT = b".git"
FLUSH_SIZE = 8_000_000


class PathEntry(NamedTuple):
    """What was seen at a path. `closed` are folders nobody looks into: left out on purpose, or not to be opened."""

    kind: str
    mode: int = 0
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    racy: bool = False
    digest: bytes = b""
    target: bytes = b""


PathEntries = dict[bytes, PathEntry]


class CheckpointPolicy(Struct, frozen=True, kw_only=True):
    """What is covered."""

    skip: frozenset[bytes] = frozenset()
    files: int = 100_000
    total: int = 1_000_000_000
    each: int = 20_000_000
    days: int = 30
    besides: frozenset[bytes] = frozenset()
    """Folders that are none of the workspace's business, by their real path."""


SafeElsewhere = Callable[[str, FileState], bool]


def never_safe(_path: str, _state: FileState) -> bool:
    return False


class TooManyFiles(Exception):
    """There are more files than are looked at."""


class _Scan(Struct):
    """One pass over a workspace."""

    root: bytes
    known: Mapping[bytes, PathEntry]
    rules: CheckpointPolicy
    found: PathEntries = field(default_factory=PathEntries)
    unread: list[bytes] = field(default_factory=list[bytes])
    device: int = 0

    def scan_folder(self, top: bytes) -> None:
        """Everything below a folder; links are not followed, and other file systems are not entered."""
        stack = [top]
        while stack:
            prefix = stack.pop()
            try:
                self._list_folder(prefix, stack)
            except FileNotFoundError:
                self.found.pop(prefix, None)
            except OSError:
                self.found[prefix] = self.found.get(prefix, PathEntry(FOLDER))._replace(kind=CLOSED)

    def _list_folder(self, prefix: bytes, stack: list[bytes]) -> None:
        start = prefix + b"/" if prefix else b""
        known, found, unread, limit = self.known, self.found, self.unread, self.rules.files
        with os.scandir(os.path.join(self.root, prefix)) as entries:
            for entry in entries:
                name = entry.name
                if name == GIT:
                    continue
                path = start + name
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                old = known.get(path)
                if (
                    old is not None
                    and old.ctime == stat.st_ctime_ns
                    and old.mtime == stat.st_mtime_ns
                    and old.size == stat.st_size
                    and old.inode == stat.st_ino
                    and old.mode == stat.st_mode
                    and not old.racy
                ):
                    found[path] = old
                    continue
                if S_IFMT(stat.st_mode) == S_IFDIR:
                    self._enter_folder(path, name, stat, stack)
                else:
                    found[path] = entry_from_stat(stat)
                    unread.append(path)
        if len(found) > limit:
            raise TooManyFiles

    def _enter_folder(self, path: bytes, name: bytes, stat: os.stat_result, stack: list[bytes]) -> None:
        if os.path.join(self.root, path) in self.rules.besides:
            return
        old = self.known.get(path)
        if name in self.rules.skip or stat.st_dev != self.device:
            fresh = PathEntry(CLOSED, stat.st_mode, mtime=stat.st_mtime_ns)
        else:
            # A folder's times and size change with what is in it, which is seen for itself.
            fresh = PathEntry(FOLDER, stat.st_mode)
            stack.append(path)
        self.found[path] = old if old and old == fresh else fresh

    def scan_path(self, path: bytes) -> None:
        """A path by name, with all that is below it."""
        try:
            stat = os.lstat(os.path.join(self.root, path))
        except OSError:
            return
        if S_IFMT(stat.st_mode) != S_IFDIR:
            old = self.known.get(path)
            same = old is not None and not old.racy and _stat_stamp(old) == _stat_stamp(entry_from_stat(stat))
            self.found[path] = old if old and same else entry_from_stat(stat)
            self.unread += [] if same else [path]
            return
        stack: list[bytes] = []
        self._enter_folder(path, path.rpartition(b"/")[2], stat, stack)
        if stack:
            self.scan_folder(path)


def scan_workspace(
    root: bytes,
    known: Mapping[bytes, PathEntry],
    rules: CheckpointPolicy,
    contents: FileContentStore,
    tops: Sequence[bytes] | None = None,
) -> PathEntries:
    """What is there now, below `tops` or everywhere; contents that are new are kept. Raises TooMany, OSError."""
    pass_ = _Scan(root, known, rules, device=os.stat(root).st_dev)
    if tops is None:
        pass_.scan_folder(b"")
    for top in tops or ():
        pass_.scan_path(top)
    if pass_.unread:
        _read_contents(pass_, contents)
    return pass_.found


def entry_from_stat(stat: os.stat_result) -> PathEntry:
    kind = {S_IFREG: FILE, S_IFLNK: LINK}.get(S_IFMT(stat.st_mode), OTHER)
    return PathEntry(kind, stat.st_mode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, racy=True)


def _stat_stamp(entry: PathEntry) -> tuple[int, ...]:
    return entry[1:6]


def _read_contents(pass_: _Scan, contents: FileContentStore) -> None:
    """Reads what is new, small files first: beyond the cap only that there was something is known."""
    kept: list[tuple[bytes, bytes]] = []
    size = total = 0
    for path in sorted(pass_.unread, key=lambda path: pass_.found[path].size):
        entry, data = read_content(os.path.join(pass_.root, path), pass_.found[path], pass_.rules, total)
        if entry is None:
            del pass_.found[path]
            continue
        pass_.found[path] = entry
        if data is not None:
            kept.append((entry.digest, data))
            size, total = size + len(data), total + len(data)
        if size >= FLUSH_SIZE:
            contents.put_contents(kept)
            kept, size = [], 0
    if kept:
        contents.put_contents(kept)


def read_content(
    path: bytes, entry: PathEntry, rules: CheckpointPolicy, total: int = 0, *, dir_fd: int | None = None
) -> tuple[PathEntry | None, bytes | None]:
    """The entry with what is in it, and the content itself where it is one to keep. None for what is gone."""
    try:
        if entry.kind == LINK:
            return entry._replace(racy=_is_racy(entry, time.time_ns()), target=os.readlink(path, dir_fd=dir_fd)), None
        if entry.kind != FILE or entry.size > rules.each or total + entry.size > rules.total:
            return entry._replace(racy=False), None
        return _read_steady(path, entry, dir_fd)
    except FileNotFoundError:
        return None, None
    except OSError:
        # Not to be read: that it is there, and when it changed, is all that is known.
        return entry._replace(racy=False), None


def _read_steady(path: bytes, entry: PathEntry, dir_fd: int | None) -> tuple[PathEntry, bytes | None]:
    """A file's content, read while nobody changed it, if that can be had."""
    data = b""
    for _ in range(3):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            data = _read_all(fd, entry.size)
            stat = os.fstat(fd)
        finally:
            os.close(fd)
        now = entry_from_stat(stat)
        if now.kind != FILE:
            return now._replace(racy=False), None
        steady = _stat_stamp(now) == _stat_stamp(entry) and len(data) == now.size
        entry = now
        if steady:
            break
    return entry._replace(digest=content_digest(data), racy=_is_racy(entry, time.time_ns())), data


def _read_all(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while data := os.read(fd, 1_000_000):
        parts.append(data)
    return b"".join(parts)


def _is_racy(entry: PathEntry, now: int) -> bool:
    coarse = entry.ctime % 1_000_000_000 == 0 and entry.mtime % 1_000_000_000 == 0
    return now - max(entry.ctime, entry.mtime) < (COARSE_TICK if coarse else FINE_TICK)


def file_state(entry: PathEntry | None) -> FileState | None:
    """What a fact says of an entry."""
    if entry is None or entry.kind == CLOSED:
        return None
    mode = S_IMODE(entry.mode)
    if entry.kind == FILE:
        mtime = 0 if entry.digest else entry.mtime
        return FileState(kind="file", mode=mode, size=entry.size, digest=entry.digest.hex(), mtime=mtime)
    if entry.kind == LINK:
        return FileState(kind="link", target=encode_path(entry.target))
    return FileState(kind="folder" if entry.kind == FOLDER else "other", mode=mode)


class ScanDifference(NamedTuple):
    """What differs between two views, and what cannot be told of or undone."""

    changes: list[FileChange]
    gaps: list[str]


def compare_scans(
    before: Mapping[bytes, PathEntry],
    after: Mapping[bytes, PathEntry],
    large: int = CheckpointPolicy().each,
    safe: SafeElsewhere = never_safe,
) -> ScanDifference:
    """What changed. What is `safe` elsewhere can be undone though it was not copied; what became too large cannot."""
    shut = {path for view in (before, after) for path, entry in view.items() if entry.kind == CLOSED}
    found = ScanDifference([], [])
    for path in sorted(_differing_paths(before, after)):
        old, new = before.get(path), after.get(path)
        if shut and _is_below(path, shut):
            continue
        if (old and old.kind == CLOSED) or (new and new.kind == CLOSED):
            found.gaps.extend(_describe_closed(path, old, new))
            if not (old and new and old.kind != new.kind and FOLDER in (old.kind, new.kind)):
                continue
            # It was shut or opened by a change of its mode, which can be undone.
            old, new = old._replace(kind=FOLDER), new._replace(kind=FOLDER)
        was, now = file_state(old), file_state(new)
        if was == now:
            continue
        found.changes.append(FileChange(path=encode_path(path), before=was, after=now))
        if was and _is_uncopied(was) and not same_content(was, now) and not safe(encode_path(path), was):
            found.gaps.append(f"{display_path(encode_path(path))}: {explain_not_kept(was)}")
        elif now and now.kind == "file" and now.size > large and not same_content(was, now):
            found.gaps.append(
                f"{display_path(encode_path(path))}: {now.size:,} bytes are too many to be kept; an undo leaves it"
            )
    return found


def _differing_paths(before: Mapping[bytes, PathEntry], after: Mapping[bytes, PathEntry]) -> Iterable[bytes]:
    yield from (path for path, entry in after.items() if before.get(path) is not entry)
    yield from before.keys() - after.keys()


def _is_below(path: bytes, shut: set[bytes]) -> bool:
    while path := path.rpartition(b"/")[0]:
        if path in shut:
            return True
    return False


def _describe_closed(path: bytes, old: PathEntry | None, new: PathEntry | None) -> list[str]:
    if b"cache" in path.rpartition(b"/")[2].lower():
        # What is made anew by itself is not missed.
        return []
    what = "appeared" if old is None else "changed" if new else "went away"
    return [f"{display_path(encode_path(path))}/ {what}: what is in it is not covered"]


def _is_uncopied(state: FileState) -> bool:
    return state.kind == "other" or (state.kind == "file" and not state.digest)


def same_content(one: FileState | None, other: FileState | None) -> bool:
    """Whether two files hold the same, as far as is known: what was not copied goes by size and time."""
    if one is None or other is None or one.kind != "file" or other.kind != "file" or one.digest != other.digest:
        return False
    return bool(one.digest) or (one.size, one.mtime) == (other.size, other.mtime)


def explain_not_kept(state: FileState) -> str:
    why = "a special file" if state.kind == "other" else f"{state.size:,} bytes, or it could not be read"
    return f"what it held was not kept ({why})"
