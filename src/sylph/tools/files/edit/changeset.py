"""Changes to many files at once: all of them or none, also when the process is killed in between.

First every new content is written beside its place, on the disk. Then the changes are made, each by one rename or
removal. Whoever finds one of them made knows that all the drafts were there: the rest can be made from them.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISREG

from msgspec import Struct

from sylph.core.errors import OutcomeUnknown, ToolError
from sylph.core.tool import ToolContext, ToolResult
from sylph.tools.files import atomic_write
from sylph.tools.files.workspace_paths import display_path, resolve_writable, translate_os_errors

ABSENT = "absent"
ARROW = " > "


class FileContent(Struct, frozen=True):
    """A plain file: its bytes and its mode. A new file has none yet: it gets the usual one, `executable` or not."""

    data: bytes
    mode: int | None = None
    executable: bool = False
    was: os.stat_result | None = None

    def __eq__(self, other: object) -> bool:
        """The same content, whatever the file was that held it."""
        return isinstance(other, FileContent) and self._comparison_key == other._comparison_key

    def __hash__(self) -> int:
        return hash(self._comparison_key)

    @property
    def _comparison_key(self) -> tuple[bytes, int | None, bool]:
        return self.data, self.mode, self.executable


class ChangesetStep(Struct, frozen=True):
    """One file as it was seen and as it is to be; None is no file."""

    path: Path
    before: FileContent | None
    after: FileContent | None


def load_content(path: Path) -> FileContent | None:
    """The plain file at `path`; None where nothing is. Raises OSError, and ToolError for anything else."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not S_ISREG(found.st_mode):
        raise ToolError(f"{path.name} is not a plain file.", kind="not_a_file")
    return FileContent(path.read_bytes(), S_IMODE(found.st_mode), was=found)


def expected_changes(root: Path, steps: Iterable[ChangesetStep]) -> dict[str, str]:
    """For the log: every file with what it is and what it will be. Taken before anything is touched."""
    base = Path(os.path.realpath(root))
    return {
        step.path.relative_to(base).as_posix(): _content_mark(step.before) + ARROW + _content_mark(step.after)
        for step in steps
    }


def apply_changes(root: Path, steps: list[ChangesetStep], by: str) -> None:
    """Makes all the changes, or raises and leaves all as it was."""
    base = Path(os.path.realpath(root))
    drafts = stage_drafts(root, steps, by)
    try:
        for _ in commit_drafts(base, drafts):
            pass
    except OSError as error:
        _roll_back(root, steps, by)
        _remove_drafts(filter(None, drafts.values()))
        place = display_path(root, Path(os.fsdecode(error.filename))) if error.filename else "A file"
        with translate_os_errors(place):
            raise


def stage_drafts(root: Path, steps: list[ChangesetStep], by: str) -> dict[Path, Path | None]:
    """Writes every new content beside its place, on the disk; None for what is to be removed."""
    base = Path(os.path.realpath(root))
    drafts: dict[Path, Path | None] = {}
    try:
        for step in steps:
            drafts[step.path] = draft = _draft_location(base, step.path, by) if step.after else None
            if draft and step.after:
                with translate_os_errors(display_path(root, step.path)):
                    _write_draft(draft, step.after)
        _fsync_folders({draft.parent for draft in drafts.values() if draft})
        for step in steps:
            _check_unchanged(root, step)
    except BaseException:
        _remove_drafts(filter(None, drafts.values()))
        raise
    return drafts


def commit_drafts(base: Path, drafts: Mapping[Path, Path | None]) -> Iterator[Path]:
    """Makes the changes one by one. Removals first: a folder can take the place of a file that goes."""
    touched: set[Path] = set()
    for path, draft in drafts.items():
        if draft is None:
            path.unlink(missing_ok=True)
            touched.add(_prune_empty_folders(base, path.parent))
            yield path
    for path, draft in drafts.items():
        if draft is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(path)
            touched |= {path.parent, draft.parent}
            yield path
    _fsync_folders(touched)


def recover_changes(context: ToolContext) -> ToolResult | None:
    """What became of changes that were begun: made, not made, or made to their end now."""
    foreseen = _parse_expected(context)
    if not foreseen:
        raise _unknown_outcome(context, "It is not known which files it was to change.", {})
    base = Path(os.path.realpath(context.workspace))
    places = {path: list(_draft_locations(base, path, context.idempotency_key)) for path in foreseen}
    now = {path: fingerprint_file(path) for path in foreseen}
    left = [path for path, (_, after) in foreseen.items() if not _matches_mark(now[path], after)]
    if left and all(now[path] == before for path, (before, _) in foreseen.items()):
        _remove_drafts(draft for drafts in places.values() for draft in drafts)
        return None
    drafts = {path: _find_draft(places[path], foreseen[path][1]) for path in left}
    for path in left:
        before, after = foreseen[path]
        if now[path] != before or (after != ABSENT and drafts[path] is None):
            raise _unknown_outcome(context, "Some of its files are neither as they were nor as they were to be.", now)
    for _ in commit_drafts(base, drafts):
        pass
    _remove_drafts(draft for each in places.values() for draft in each)
    if not left:
        return _recovery_result(context, "The changes were made before Sylph was interrupted", foreseen)
    return _recovery_result(
        context, "Sylph was interrupted half way and has made the rest of the changes now", foreseen
    )


def _find_draft(places: Iterable[Path], mark: str) -> Path | None:
    """The draft that holds what a file is to be."""
    return next((draft for draft in places if mark != ABSENT and _matches_mark(fingerprint_file(draft), mark)), None)


def fingerprint_file(path: Path) -> str:
    """What is at `path`, as `foresee` writes it."""
    try:
        return _content_mark(load_content(path))
    except (OSError, ToolError) as error:
        return f"unreadable ({error})"


def with_execute_bits(mode: int) -> int:
    """Whoever may read it may run it."""
    return mode | (mode & 0o444) >> 2


def _content_mark(content: FileContent | None) -> str:
    if content is None:
        return ABSENT
    digest = hashlib.sha256(content.data).hexdigest()
    return digest if content.mode is None else f"{digest} {content.mode:o}"


def _matches_mark(found: str, mark: str) -> bool:
    """Whether that is there; the mode counts only where it was known beforehand."""
    return found == mark or (" " not in mark and found.partition(" ")[0] == mark)


def _draft_location(base: Path, path: Path, by: str) -> Path:
    """Beside the file, or in the nearest folder that is there already."""
    return next(draft for draft in _draft_locations(base, path, by) if draft.parent.is_dir())


def _draft_locations(base: Path, path: Path, by: str) -> Iterator[Path]:
    """Every place where the draft may be: folders come and go while changes are made."""
    for place in path.parents:
        yield atomic_write.draft_path(place / path.name, f"{by} {path}")
        if place == base:
            return


def _write_draft(draft: Path, content: FileContent) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        if content.was:
            atomic_write.copy_owner_mode(descriptor, content.was)
        if content.mode is not None:
            os.fchmod(descriptor, content.mode)
        elif content.executable:
            os.fchmod(descriptor, with_execute_bits(S_IMODE(os.fstat(descriptor).st_mode)))
        file.write(content.data)
        file.flush()
        os.fsync(descriptor)


def _check_unchanged(root: Path, step: ChangesetStep) -> None:
    if load_content(step.path) != step.before:
        raise ToolError(
            f"{display_path(root, step.path)} was changed by somebody else in this moment; nothing was done.",
            kind="changed_meanwhile",
            next=["Read it again, then repeat the change."],
        )


def _roll_back(root: Path, steps: list[ChangesetStep], by: str) -> None:
    """The system refused one of the changes: those before it are undone."""
    back = [
        ChangesetStep(step.path, step.after, step.before) for step in steps if load_content(step.path) != step.before
    ]
    try:
        for step in back:
            if step.after is None:
                step.path.unlink()
                _prune_empty_folders(Path(os.path.realpath(root)), step.path.parent)
        for step in back:
            if step.after is not None:
                atomic_write.replace_file(step.path, step.after.data, was=atomic_write.stat_or_none(step.path), by=by)
                step.path.chmod(step.after.mode or S_IMODE(step.path.stat().st_mode))
    except OSError as error:
        raise OutcomeUnknown(
            f"A change failed half way and could not be taken back: {error}.",
            details={display_path(root, step.path): fingerprint_file(step.path) for step in steps},
            next=["Read the files and decide what is left to do."],
        ) from error


def _prune_empty_folders(base: Path, folder: Path) -> Path:
    """Removes folders that have become empty; the first that stays."""
    while folder != base:
        try:
            folder.rmdir()
        except OSError:
            break
        folder = folder.parent
    return folder


def _fsync_folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        # One that a later removal emptied is settled with its parent.
        with suppress(FileNotFoundError):
            atomic_write.fsync_folder(folder)


def _remove_drafts(drafts: Iterable[Path]) -> None:
    for draft in drafts:
        with suppress(NotADirectoryError):
            draft.unlink(missing_ok=True)


def _parse_expected(context: ToolContext) -> dict[Path, tuple[str, str]]:
    found: dict[Path, tuple[str, str]] = {}
    for name, marks in context.foreseen.items():
        before, _, after = marks.partition(ARROW)
        found[resolve_writable(context.workspace, name)] = (before, after)
    return found


def _display_names(context: ToolContext, paths: Iterable[Path]) -> Iterator[str]:
    return (display_path(context.workspace, path) for path in paths)


def _recovery_result(context: ToolContext, said: str, paths: Iterable[Path]) -> ToolResult:
    return ToolResult(text=f"{said}: {', '.join(_display_names(context, paths))}.")


def _unknown_outcome(context: ToolContext, said: str, now: Mapping[Path, str]) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"Sylph was stopped in the middle of the change. {said}",
        details={
            **{f"now {name}": mark for name, mark in zip(_display_names(context, now), now.values(), strict=True)}
        },
        next=["Read the files and decide what is left to do."],
    )
