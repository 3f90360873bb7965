"""Putting files back: each one whole or not at all, never through a link, never over what somebody else did."""

import errno
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from stat import S_IMODE, S_ISDIR

from sylph.core.changes import FileChange, FileLeft, FileState, bytes_of, name_of
from sylph.engine.undo.contents import Contents
from sylph.engine.undo.ledger import Target
from sylph.engine.undo.trash import Trash
from sylph.engine.undo.view import Rules, content, same_content, state_of, unkept
from sylph.engine.undo.view import entry_of as seen

CHANGED = "it was changed since by somebody else"
GONE = "what it held is not kept here any more"
LARGE = "it is too large to be kept, so that no redo could bring it back"
NO_WAY = "a folder on the way to it is a link now, or gone"
CHUNK = 1_000_000

WHY = {
    errno.ENOTEMPTY: "there are other things in it",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the file system is read-only",
    errno.ELOOP: NO_WAY,
    errno.ENOTDIR: NO_WAY,
    errno.ENOENT: NO_WAY,
}


class Workshop:
    """Looks at and changes paths below one root."""

    def __init__(self, root: bytes, contents: Contents, rules: Rules, trash: Trash) -> None:
        self._root, self._contents, self._rules, self._trash = root, contents, rules, trash

    def steps(self, targets: Iterable[Target], *, force: bool) -> tuple[list[FileChange], list[FileLeft]]:
        """What there is to do, and what must be left alone. What is there now is kept, for the way forward again."""
        steps, left = list[FileChange](), list[FileLeft]()
        for target in targets:
            now, why = self._now(target.path)
            if target.left:
                left.append(FileLeft(path=target.path, why=target.left))
            if why and now is None:
                left.append(FileLeft(path=target.path, why=why))
            elif now == target.to:
                continue
            elif why := self._lacking(target, now):
                left.append(FileLeft(path=target.path, why=why))
            elif now != target.expected and not force:
                left += [] if target.left else [FileLeft(path=target.path, why=CHANGED)]
            elif not force and self._lost(target, now):
                left.append(FileLeft(path=target.path, why=LARGE))
            else:
                steps.append(FileChange(path=target.path, before=now, after=target.to))
        return steps, left

    def apply(self, steps: Sequence[FileChange]) -> tuple[list[str], list[FileLeft]]:
        """Does the steps; those that a crash had let happen already are done. Returns what is back and what is not."""
        left: dict[str, str] = {}
        todo: list[FileChange] = []
        for step in steps:
            now, why = self._now(step.path)
            if now == step.after:
                continue
            if now != step.before and not _half(step, now):
                left[step.path] = why or CHANGED
                continue
            todo.append(_from(step, now))
        todo = _without_needed(todo, left)
        shallow_first = sorted(todo, key=lambda step: bytes_of(step.path).count(b"/"))
        deep_first = shallow_first[::-1]
        for phase, order in ((self._open, shallow_first), (self._clear, deep_first), (self._fill, shallow_first)):
            self._each(phase, order, left)
        self._each(self._mode, deep_first, left)
        self._settle(todo)
        restored = [step.path for step in steps if step.path not in left]
        return restored, [FileLeft(path=path, why=why) for path, why in left.items()]

    def _settle(self, steps: Iterable[FileChange]) -> None:
        """What was renamed and removed is so on the disk too."""
        firsts = {bytes_of(step.path).rpartition(b"/")[0]: bytes_of(step.path) for step in steps}
        for path in firsts.values():
            with suppress(OSError), self._parent(path) as (folder, _):
                os.fsync(folder)

    def _each(self, work: Callable[[FileChange], None], order: Iterable[FileChange], left: dict[str, str]) -> None:
        for step in order:
            if step.path in left:
                continue
            try:
                work(step)
            except OSError as error:
                left[step.path] = _why(error)

    def _now(self, path: str) -> tuple[FileState | None, str]:
        """What is there, with its content kept; or why nobody can tell."""
        name = bytes_of(path)
        try:
            with self._parent(name) as (folder, last):
                stat = os.stat(last, dir_fd=folder, follow_symlinks=False)
                if S_ISDIR(stat.st_mode):
                    return FileState(kind="folder", mode=S_IMODE(stat.st_mode)), ""
                entry, data = content(last, seen(stat), self._rules, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return None, ""
        except OSError as error:
            return None, _why(error)
        if entry and data is not None:
            self._contents.put([(entry.digest, data)])
        return state_of(entry), ""

    def _lacking(self, target: Target, now: FileState | None) -> str:
        """Why what is to be there cannot be had, by force neither; empty where it can."""
        to = target.to
        if to is None or to.kind in ("link", "folder") or same_content(now, to):
            return ""
        if not to.digest:
            return "" if self._trash.find(self._root, target.path, to) else unkept(to)
        return GONE if self._contents.get(bytes.fromhex(to.digest)) is None else ""

    def _lost(self, target: Target, now: FileState | None) -> bool:
        """Whether what is there now is too large to be kept, and held nowhere else: no redo could bring it back."""
        if now is None or now.kind != "file" or now.size <= self._rules.each or same_content(now, target.to):
            return False
        return self._trash.find(self._root, target.path, now) is None

    def _open(self, step: FileChange) -> None:
        """A folder that was shut by the turn is opened first."""
        if _folder(step.before) and _folder(step.after):
            with self._parent(bytes_of(step.path)) as (folder, last):
                _chmod(folder, last, (step.after.mode if step.after else 0) | 0o700)

    def _clear(self, step: FileChange) -> None:
        """Away with what was made, or with what stands in the place of something of another kind."""
        if step.before is None or (step.after and step.after.kind == step.before.kind):
            return
        with self._parent(bytes_of(step.path)) as (folder, last), _writable(folder):
            if step.before.kind == "folder":
                os.rmdir(last, dir_fd=folder)
            else:
                os.unlink(last, dir_fd=folder)

    def _fill(self, step: FileChange) -> None:
        to = step.after
        if to is None:
            return
        with self._parent(bytes_of(step.path)) as (folder, last), _writable(folder):
            if to.kind == "folder":
                if not _folder(step.before):
                    os.mkdir(last, 0o700, dir_fd=folder)
            elif to.kind == "link":
                draft = _draft(last)
                _gone(draft, folder)
                os.symlink(bytes_of(to.target), draft, dir_fd=folder)
                os.rename(draft, last, src_dir_fd=folder, dst_dir_fd=folder)
            elif same_content(step.before, to):
                _chmod(folder, last, to.mode)
            else:
                self._write(folder, last, step.path, to)

    def _write(self, folder: int, last: bytes, path: str, to: FileState) -> None:
        data = self._contents.get(bytes.fromhex(to.digest)) if to.digest else None
        trashed = self._trash.find(self._root, path, to)
        if data is None and trashed is None:
            raise OSError(errno.ENODATA, GONE)
        draft = _draft(last)
        _gone(draft, folder)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as file:
            if data is not None:
                file.write(data)
            elif trashed:
                with open(trashed, "rb") as kept:
                    shutil.copyfileobj(kept, file, CHUNK)
            file.flush()
            _adopt(fd, last, folder)
            os.fchmod(fd, to.mode)
            if to.mtime:
                # A file that was not copied is known by its time.
                os.utime(fd, ns=(to.mtime, to.mtime))
            os.fsync(fd)
        os.rename(draft, last, src_dir_fd=folder, dst_dir_fd=folder)

    def _mode(self, step: FileChange) -> None:
        """Folders get their mode last: one that may not be written to could not be filled."""
        if step.after and step.after.kind == "folder":
            with self._parent(bytes_of(step.path)) as (folder, last):
                _chmod(folder, last, step.after.mode)

    @contextmanager
    def _parent(self, path: bytes) -> Generator[tuple[int, bytes]]:
        """The folder that holds a path, reached step by step without following a link, and the last name."""
        *names, last = path.split(b"/")
        if last in (b"", b".", b"..") or any(name in (b"", b".", b"..", b".git") for name in names):
            raise OSError(errno.EINVAL, "not a path of the workspace")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(self._root, flags)
        try:
            for name in names:
                inner = os.open(name, flags, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder, last
        finally:
            os.close(folder)


def _why(error: OSError) -> str:
    return WHY.get(error.errno or 0) or error.strerror or str(error)


def _half(step: FileChange, now: FileState | None) -> bool:
    """Whether it is what a kill in the middle of this step leaves: something removed, or a folder not yet shut."""
    if now is None:
        return step.before is not None and step.after is not None
    if step.after is None or step.after.kind != "folder":
        return False
    return now.kind == "folder" and now.mode in (0o700, step.after.mode | 0o700)


def _from(step: FileChange, now: FileState | None) -> FileChange:
    return FileChange(path=step.path, before=now, after=step.after)


def _without_needed(steps: Sequence[FileChange], left: dict[str, str]) -> list[FileChange]:
    """A folder stays in which something is to be put back, though it was not there then: somebody else had used it."""
    needed = {parent for step in steps if step.after for parent in _parents(step.path)}
    going = [step for step in steps if _folder(step.before) and not _folder(step.after) and step.path in needed]
    left.update((step.path, WHY[errno.ENOTEMPTY]) for step in going)
    return [step for step in steps if step not in going]


def _parents(path: str) -> list[str]:
    name = bytes_of(path)
    return [name_of(name[:at]) for at, byte in enumerate(name) if byte == ord("/")]


def _folder(state: FileState | None) -> bool:
    return state is not None and state.kind == "folder"


def _chmod(folder: int, name: bytes, mode: int) -> None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        # What may not be read can still be changed by its owner.
        os.chmod(name, mode, dir_fd=folder)
        return
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _adopt(fd: int, name: bytes, folder: int) -> None:
    """The owner stays the same, where there is one and we may."""
    with suppress(FileNotFoundError, PermissionError):
        was = os.stat(name, dir_fd=folder, follow_symlinks=False)
        os.fchown(fd, was.st_uid, was.st_gid)


@contextmanager
def _writable(folder: int) -> Generator[None]:
    """For so long a folder can be written to, whatever its mode says."""
    mode = S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o300 == 0o300:
        yield
        return
    os.fchmod(folder, mode | 0o300)
    try:
        yield
    finally:
        os.fchmod(folder, mode)


def _draft(name: bytes) -> bytes:
    return b".sylph-undo-" + name_of(name).encode("utf-8", "replace")[:80].replace(b"\0", b"") + b".tmp"


def _gone(name: bytes, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
