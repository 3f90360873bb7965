"""A place in a workspace, held open: what is done is done there, whatever its path leads to meanwhile."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from msgspec import Struct

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem import path_names
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.tools.files.workspace_paths import OS_ERROR_TEXTS

MAX_PATH_BYTES = 4000
# A folder needs no right to be read for what is in it to be reached.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FileLocation(Struct, frozen=True, kw_only=True):
    """`name` in the folder `fd`; `missing` are the folders between them that are not there yet."""

    workspace: WorkspaceRoot
    path: Path
    fd: int
    name: str
    missing: tuple[str, ...] = ()

    @property
    def display_path(self) -> str:
        return self.workspace.display_path(self.path)

    def stat(self) -> os.stat_result | None:
        """What is there now, of a link the link itself; None for nothing."""
        if self.missing:
            return None
        try:
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def require_stat(self) -> os.stat_result:
        """The same, where something has to be."""
        found = self.stat()
        if found is None:
            raise UserError(
                f"{self.display_path} does not exist.", kind="not_found", next=["list the folder it should be in"]
            )
        return found

    def open_file(self) -> int:
        """Opens a plain file to be read; anything else is refused, and waited for by nobody."""
        _require_plain_file(self.require_stat(), self.display_path)
        fd = os.open(self.name, _FILE, dir_fd=self.fd)
        try:
            _require_plain_file(os.fstat(fd), self.display_path)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def open_folder(self) -> int:
        """Opens a folder to be listed."""
        if not S_ISDIR(self.require_stat().st_mode):
            raise UserError(f"{self.display_path} is not a folder.", kind="not_a_directory", next=["read it as a file"])
        return os.open(self.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)


@contextmanager
def open_location(
    ground: WorkspaceRoot, given: str, *, writing: bool = False, link: bool = False
) -> Generator[FileLocation]:
    """The place that a path names. With `link` a link is itself, to be moved or removed. Blocks; raises UserError."""
    wanted = path_names.split_path(given)
    with translate_os_errors(path_names.display_name("/".join(wanted)) or "The workspace"):
        path = _resolve_path(ground, wanted, link=link)
        if why := ground.protection_reason(path, writing=writing):
            raise UserError(f"{ground.display_path(path)} {why}.", kind="protected_path", next=["use another file"])
        fd, name, missing = _open_parent(ground.root, path.relative_to(ground.root).parts)
        try:
            yield FileLocation(workspace=ground, path=path, fd=fd, name=name, missing=missing)
        finally:
            os.close(fd)


def _resolve_path(ground: WorkspaceRoot, wanted: Sequence[str], *, link: bool) -> Path:
    root = str(ground.root)
    if link and not wanted:
        raise UserError("This is the workspace itself.", kind="bad_path", next=[path_names.STAY_INSIDE_HINT])
    last = wanted[-1:] if link else ()
    real = os.path.realpath(os.path.join(root, *(wanted[:-1] if link else wanted)))
    # At a loop of links realpath gives up half way, and what it leaves unread could still lead out.
    if os.path.realpath(real) != real:
        raise UserError(
            "/".join(wanted) + " runs through a loop of links.", kind="symlink_loop", next=[path_names.STAY_INSIDE_HINT]
        )
    path = Path(real, *last)
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        # Deeper than any program could name it again.
        raise UserError("The path is too long.", kind="name_too_long", next=["use shorter names"])
    if not path.is_relative_to(root):
        raise UserError(
            path_names.display_name("/".join(wanted)) + " leads out of the workspace.",
            kind="outside_workspace",
            next=[path_names.STAY_INSIDE_HINT],
        )
    return path


def _open_parent(root: Path, inner: Sequence[str]) -> tuple[int, str, tuple[str, ...]]:
    """The folder a name is in, opened step by step: whoever puts a link in the way now has come too late."""
    *folders, name = inner or (".",)
    fd = os.open(root, _FOLDER)
    for number, each in enumerate(folders):
        above = fd
        try:
            fd = os.open(each, _FOLDER, dir_fd=above)
        except FileNotFoundError:
            return above, name, tuple(folders[number:])
        except BaseException:
            os.close(above)
            raise
        os.close(above)
    return fd, name, ()


def make_folders(fd: int, missing: Sequence[str]) -> int:
    """Makes folders one in the other; a new descriptor of the last, or of `fd` where there are none."""
    here = os.dup(fd)
    for name in missing:
        above = here
        try:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
            here = os.open(name, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return here


def fd_path(fd: int, path: Path) -> Path:
    """The folder that is open as `fd`, as a path for programs that take nothing else."""
    own = Path(f"/proc/self/fd/{fd}")
    return own if own.exists() else path


def _require_plain_file(found: os.stat_result, name: str) -> None:
    if S_ISDIR(found.st_mode):
        raise UserError(f"{name} is a folder.", kind="is_directory", next=["list it"])
    if not S_ISREG(found.st_mode):
        raise UserError(f"{name} is not a plain file.", kind="not_a_file", next=["use a plain file"])


@contextmanager
def translate_os_errors(name: str) -> Generator[None]:
    """Turns what the system refuses into an answer."""
    try:
        yield
    except OSError as error:
        kind, why = OS_ERROR_TEXTS.get(error.errno or 0, ("os_error", f"failed: {error.strerror or error}"))
        raise UserError(
            f"{name} {why}.", kind=kind, details={"path": name}, next=["list the folder it is in"]
        ) from error
    except RecursionError as error:
        raise UserError(f"{name} is too deep.", kind="too_deep", next=["take a folder further down"]) from error
