"""Names the model gives, turned into paths that stay inside the workspace."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sylph.core.errors import ToolError
from sylph.core.permission.types import Risk
from sylph.core.tool import CallAssessment

INSIDE_HINT = "Use a path inside the workspace, relative to its root."

# What the system says, in words the model can act on.
OS_ERROR_TEXTS: dict[int, tuple[str, str]] = {
    errno.ENOENT: ("not_found", "does not exist"),
    errno.EACCES: ("permission_denied", "may not be touched: permission denied"),
    errno.EPERM: ("permission_denied", "may not be touched: not permitted"),
    errno.EROFS: ("permission_denied", "is on a read-only file system"),
    errno.EISDIR: ("is_directory", "is a directory"),
    errno.ENOTDIR: ("not_a_directory", "runs through something that is not a directory"),
    errno.ELOOP: ("symlink_loop", "is a symbolic link that leads back to itself"),
    errno.ENAMETOOLONG: ("name_too_long", "is too long a name for this file system"),
    errno.ENOSPC: ("no_space", "does not fit: the disk is full"),
    errno.EDQUOT: ("no_space", "does not fit: the disk quota is used up"),
    errno.EFBIG: ("too_large", "is larger than the system allows"),
    errno.E2BIG: ("too_large", "is longer than the system can start"),
}


def resolve_inside(root: Path, name: str) -> Path:
    """The real path of `name`, links followed. What leads out of `root` is refused, whether it exists or not."""
    _check_name(name)
    if there := _resolve_existing(root, name):
        return there
    base = os.path.realpath(root)
    real = os.path.realpath(Path(base, name))
    # At a loop of links realpath gives up half way, and what it leaves unread could still lead out.
    if os.path.realpath(real) != real:
        raise ToolError(f"{name} runs through a loop of symbolic links.", kind="symlink_loop", next=[INSIDE_HINT])
    path = Path(real)
    if not path.is_relative_to(base):
        raise ToolError(f"{name} is outside the workspace.", kind="outside_workspace", next=[INSIDE_HINT])
    return path


def _resolve_existing(root: Path, name: str) -> Path | None:
    """The short way to what is there, where the root is a real path itself: looked up once instead of three times."""
    try:
        real = os.path.realpath(f"{root}/{name}", strict=True)
    except OSError:
        return None
    # A real path holds no link, so what has the root in front has a root without one.
    return Path(real) if not name.startswith("/") and f"{real}/".startswith(f"{root}/") else None


def resolve_writable(root: Path, name: str) -> Path:
    """Like `inside`, for what is about to be written: git's own files are refused too."""
    path = resolve_inside(root, name)
    _refuse_git_files(root, name, path)
    return path


def resolve_entry(root: Path, name: str, *, git: bool = False) -> Path:
    """Like `changeable`, but of a link the link itself, to be moved or removed. `git` lets git's own files pass."""
    _check_name(name)
    base = Path(os.path.realpath(root))
    spelled = base / name
    if spelled in (base, root) or spelled.name == "..":
        raise ToolError(f"{name} is a whole workspace, or above one.", kind="bad_path", next=[INSIDE_HINT])
    try:
        path = resolve_inside(root, str(spelled.parent)) / spelled.name
    except ToolError as error:
        raise ToolError(f"{name} is outside the workspace.", kind=error.trouble.kind, next=[INSIDE_HINT]) from error
    if not git:
        _refuse_git_files(root, name, path)
    return path


def assess_read(root: Path, *names: str) -> CallAssessment:
    """The judgement of a call that only looks at these; names that lead nowhere are for the call itself to refuse."""
    try:
        return CallAssessment("read", "safe", reads=tuple(str(resolve_inside(root, name)) for name in names))
    except (ToolError, OSError):
        return CallAssessment("read", "safe")


def assess_write(why: str, *writes: Path, reads: tuple[Path, ...] = (), risk: Risk = "safe") -> CallAssessment:
    """The judgement of a call that changes these."""
    return CallAssessment("write", risk, why, reads=tuple(map(str, reads)), writes=tuple(map(str, writes)))


def assess_refusal(error: ToolError, root: Path, *names: str) -> CallAssessment:
    """The judgement of a call that will refuse these, so that whoever is asked about it hears why."""
    writes = tuple(os.path.realpath(Path(root, name)) for name in names if name and "\0" not in name)
    return CallAssessment("write", "dangerous", str(error), writes=writes)


def resolve_folder(root: Path, name: str) -> Path:
    """Like `inside`, for a folder that is there."""
    path = resolve_inside(root, name)
    with translate_os_errors(name):
        path.stat()
        if not path.is_dir():
            raise ToolError(f"{name} is not a folder.", kind="not_a_directory")
    return path


def display_path(root: Path, path: Path) -> str:
    """`path` as the model should write it: relative to the workspace, fit to print."""
    real = Path(os.path.realpath(root))
    return printable_name(path.relative_to(real).as_posix() if path.is_relative_to(real) else str(path))


def printable_name(name: str) -> str:
    """A file's name on one line of valid text; bytes that are no text become �."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


@contextmanager
def translate_os_errors(name: str) -> Generator[None]:
    """Turns what the system refuses into something the model can act on."""
    try:
        yield
    except OSError as error:
        kind, why = OS_ERROR_TEXTS.get(error.errno or 0, ("os_error", f"failed: {error.strerror or error}"))
        raise ToolError(f"{name} {why}.", kind=kind, details={"path": name}) from error


def _refuse_git_files(root: Path, name: str, path: Path) -> None:
    if any(part.casefold() == ".git" for part in path.relative_to(os.path.realpath(root)).parts):
        raise ToolError(f"{name} belongs to git itself.", kind="protected_path", next=["Change it with a git command."])


def _check_name(name: str) -> None:
    if not name.strip():
        raise ToolError("The path is empty.", kind="bad_path", next=[INSIDE_HINT])
    if "\0" in name:
        raise ToolError("A path cannot hold a NUL byte.", kind="bad_path", next=[INSIDE_HINT])
    if name == "~" or name.startswith("~/"):
        raise ToolError("~ is not expanded here.", kind="bad_path", next=[INSIDE_HINT])
    if any("\ud800" <= char <= "\udfff" for char in name):
        raise ToolError("The path is not valid text.", kind="bad_path", next=[INSIDE_HINT])
