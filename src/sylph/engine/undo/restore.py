"""Putting files back: each one whole or not at all, never through a link, never over what somebody else did."""

import errno
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from stat import S_IMODE, S_ISDIR

from sylph.core.facts.file_change import FileChange, FileState, SkippedFile, decode_path, encode_path
from sylph.engine.undo.change_history import RestoreTarget
from sylph.engine.undo.content_store import FileContentStore
from sylph.engine.undo.trash import SessionTrash
from sylph.engine.undo.workspace_scan import CheckpointPolicy, explain_not_kept, file_state, read_content, same_content
from sylph.engine.undo.workspace_scan import entry_from_stat as seen

CHANGED_SINCE = "it was changed since by somebody else"
CONTENT_GONE = "what it held is not kept here any more"
TOO_LARGE = "it is too large to be kept, so that no redo could bring it back"
PATH_BLOCKED = "a folder on the way to it is a link now, or gone"
CHUNK = 1_000_000

ERROR_REASONS = {
    errno.ENOTEMPTY: "there are other things in it",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the file system is read-only",
    errno.ELOOP: PATH_BLOCKED,
    errno.ENOTDIR: PATH_BLOCKED,
    errno.ENOENT: PATH_BLOCKED,
}


class FileRestorer:
    """Looks at and changes paths below one root."""

    def __init__(self, root: bytes, contents: FileContentStore, rules: CheckpointPolicy, trash: SessionTrash) -> None:
        self._root, self._contents, self._rules, self._trash = root, contents, rules, trash

    def plan_steps(
        self, targets: Iterable[RestoreTarget], *, force: bool
    ) -> tuple[list[FileChange], list[SkippedFile]]:
        """What there is to do, and what must be left alone. What is there now is kept, for the way forward again."""
        steps, left = list[FileChange](), list[SkippedFile]()
        for target in targets:
            now, why = self._current_state(target.path)
            if target.left:
                left.append(SkippedFile(path=target.path, why=target.left))
            if why and now is None:
                left.append(SkippedFile(path=target.path, why=why))
            elif now == target.to:
                continue
            elif why := self._why_unavailable(target, now):
                left.append(SkippedFile(path=target.path, why=why))
            elif now != target.expected and not force:
                left += [] if target.left else [SkippedFile(path=target.path, why=CHANGED_SINCE)]
            elif not force and self._would_lose(target, now):
                left.append(SkippedFile(path=target.path, why=TOO_LARGE))
            else:
                steps.append(FileChange(path=target.path, before=now, after=target.to))
        return steps, left

    def apply_steps(self, steps: Sequence[FileChange]) -> tuple[list[str], list[SkippedFile]]:
        """Does the steps; those that a crash had let happen already are done. Returns what is back and what is not."""
        left: dict[str, str] = {}
        todo: list[FileChange] = []
        for step in steps:
            now, why = self._current_state(step.path)
            if now == step.after:
                continue
            if now != step.before and not _is_half_done(step, now):
                left[step.path] = why or CHANGED_SINCE
                continue
            todo.append(_step_from(step, now))
        todo = _without_needed_folders(todo, left)
        shallow_first = sorted(todo, key=lambda step: decode_path(step.path).count(b"/"))
        deep_first = shallow_first[::-1]
        for phase, order in (
            (self._open_folder, shallow_first),
            (self._remove_old, deep_first),
            (self._create_new, shallow_first),
        ):
            self._run_phase(phase, order, left)
        self._run_phase(self._set_folder_mode, deep_first, left)
        self._sync_folders(todo)
        restored = [step.path for step in steps if step.path not in left]
        return restored, [SkippedFile(path=path, why=why) for path, why in left.items()]

    def _sync_folders(self, steps: Iterable[FileChange]) -> None:
        """What was renamed and removed is so on the disk too."""
        firsts = {decode_path(step.path).rpartition(b"/")[0]: decode_path(step.path) for step in steps}
        for path in firsts.values():
            with suppress(OSError), self._open_parent(path) as (folder, _):
                os.fsync(folder)

    def _run_phase(self, work: Callable[[FileChange], None], order: Iterable[FileChange], left: dict[str, str]) -> None:
        for step in order:
            if step.path in left:
                continue
            try:
                work(step)
            except OSError as error:
                left[step.path] = _explain_error(error)

    def _current_state(self, path: str) -> tuple[FileState | None, str]:
        """What is there, with its content kept; or why nobody can tell."""
        name = decode_path(path)
        try:
            with self._open_parent(name) as (folder, last):
                stat = os.stat(last, dir_fd=folder, follow_symlinks=False)
                if S_ISDIR(stat.st_mode):
                    return FileState(kind="folder", mode=S_IMODE(stat.st_mode)), ""
                entry, data = read_content(last, seen(stat), self._rules, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return None, ""
        except OSError as error:
            return None, _explain_error(error)
        if entry and data is not None:
            self._contents.put_contents([(entry.digest, data)])
        return file_state(entry), ""

    def _why_unavailable(self, target: RestoreTarget, now: FileState | None) -> str:
        """Why what is to be there cannot be had, by force neither; empty where it can."""
        to = target.to
        if to is None or to.kind in ("link", "folder") or same_content(now, to):
            return ""
        if not to.digest:
            return "" if self._trash.find_file(self._root, target.path, to) else explain_not_kept(to)
        return CONTENT_GONE if self._contents.get(bytes.fromhex(to.digest)) is None else ""

    def _would_lose(self, target: RestoreTarget, now: FileState | None) -> bool:
        """Whether what is there now is too large to be kept, and held nowhere else: no redo could bring it back."""
        if now is None or now.kind != "file" or now.size <= self._rules.each or same_content(now, target.to):
            return False
        return self._trash.find_file(self._root, target.path, now) is None

    def _open_folder(self, step: FileChange) -> None:
        """A folder that was shut by the turn is opened first."""
        if _is_folder(step.before) and _is_folder(step.after):
            with self._open_parent(decode_path(step.path)) as (folder, last):
                _chmod_at(folder, last, (step.after.mode if step.after else 0) | 0o700)

    def _remove_old(self, step: FileChange) -> None:
        """Away with what was made, or with what stands in the place of something of another kind."""
        if step.before is None or (step.after and step.after.kind == step.before.kind):
            return
        with self._open_parent(decode_path(step.path)) as (folder, last), _temporarily_writable(folder):
            if step.before.kind == "folder":
                os.rmdir(last, dir_fd=folder)
            else:
                os.unlink(last, dir_fd=folder)

    def _create_new(self, step: FileChange) -> None:
        to = step.after
        if to is None:
            return
        with self._open_parent(decode_path(step.path)) as (folder, last), _temporarily_writable(folder):
            if to.kind == "folder":
                if not _is_folder(step.before):
                    os.mkdir(last, 0o700, dir_fd=folder)
            elif to.kind == "link":
                draft = _draft_name(last)
                _remove_if_present(draft, folder)
                os.symlink(decode_path(to.target), draft, dir_fd=folder)
                os.rename(draft, last, src_dir_fd=folder, dst_dir_fd=folder)
            elif same_content(step.before, to):
                _chmod_at(folder, last, to.mode)
            else:
                self._write_file(folder, last, step.path, to)

    def _write_file(self, folder: int, last: bytes, path: str, to: FileState) -> None:
        data = self._contents.get(bytes.fromhex(to.digest)) if to.digest else None
        trashed = self._trash.find_file(self._root, path, to)
        if data is None and trashed is None:
            raise OSError(errno.ENODATA, CONTENT_GONE)
        draft = _draft_name(last)
        _remove_if_present(draft, folder)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as file:
            if data is not None:
                file.write(data)
            elif trashed:
                with open(trashed, "rb") as kept:
                    shutil.copyfileobj(kept, file, CHUNK)
            file.flush()
            _copy_owner(fd, last, folder)
            os.fchmod(fd, to.mode)
            if to.mtime:
                # A file that was not copied is known by its time.
                os.utime(fd, ns=(to.mtime, to.mtime))
            os.fsync(fd)
        os.rename(draft, last, src_dir_fd=folder, dst_dir_fd=folder)

    def _set_folder_mode(self, step: FileChange) -> None:
        """Folders get their mode last: one that may not be written to could not be filled."""
        if step.after and step.after.kind == "folder":
            with self._open_parent(decode_path(step.path)) as (folder, last):
                _chmod_at(folder, last, step.after.mode)

    @contextmanager
    def _open_parent(self, path: bytes) -> Generator[tuple[int, bytes]]:
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


def _explain_error(error: OSError) -> str:
    return ERROR_REASONS.get(error.errno or 0) or error.strerror or str(error)


def _is_half_done(step: FileChange, now: FileState | None) -> bool:
    """Whether it is what a kill in the middle of this step leaves: something removed, or a folder not yet shut."""
    if now is None:
        return step.before is not None and step.after is not None
    if step.after is None or step.after.kind != "folder":
        return False
    return now.kind == "folder" and now.mode in (0o700, step.after.mode | 0o700)


def _step_from(step: FileChange, now: FileState | None) -> FileChange:
    return FileChange(path=step.path, before=now, after=step.after)


def _without_needed_folders(steps: Sequence[FileChange], left: dict[str, str]) -> list[FileChange]:
    """A folder stays in which something is to be put back, though it was not there then: somebody else had used it."""
    needed = {parent for step in steps if step.after for parent in _parent_paths(step.path)}
    going = [step for step in steps if _is_folder(step.before) and not _is_folder(step.after) and step.path in needed]
    left.update((step.path, ERROR_REASONS[errno.ENOTEMPTY]) for step in going)
    return [step for step in steps if step not in going]


def _parent_paths(path: str) -> list[str]:
    name = decode_path(path)
    return [encode_path(name[:at]) for at, byte in enumerate(name) if byte == ord("/")]


def _is_folder(state: FileState | None) -> bool:
    return state is not None and state.kind == "folder"


def _chmod_at(folder: int, name: bytes, mode: int) -> None:
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


def _copy_owner(fd: int, name: bytes, folder: int) -> None:
    """The owner stays the same, where there is one and we may."""
    with suppress(FileNotFoundError, PermissionError):
        was = os.stat(name, dir_fd=folder, follow_symlinks=False)
        os.fchown(fd, was.st_uid, was.st_gid)


@contextmanager
def _temporarily_writable(folder: int) -> Generator[None]:
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


def _draft_name(name: bytes) -> bytes:
    return b".sylph-undo-" + encode_path(name).encode("utf-8", "replace")[:80].replace(b"\0", b"") + b".tmp"


def _remove_if_present(name: bytes, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
