"""Random trees, random changes to them, and what they look like afterwards."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "ü x")
State = tuple[str, int, bytes]
Tree = dict[str, State]
Change = Callable[[Path], None]


def tree_of(root: Path) -> Tree:
    """Every path below `root`, with its kind, mode and content."""
    found: Tree = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            stat = path.lstat()
            if S_ISLNK(stat.st_mode):
                state: State = ("link", 0, os.fsencode(path.readlink()))
            elif S_ISDIR(stat.st_mode):
                state = ("folder", S_IMODE(stat.st_mode), b"")
            else:
                state = ("file", S_IMODE(stat.st_mode), path.read_bytes())
            found[path.relative_to(root).as_posix()] = state
    return found


@st.composite
def paths(draw: st.DrawFn) -> str:
    return "/".join(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    what = draw(st.sampled_from((write, overwrite, remove, move, folder, link, mode)))
    path, other = draw(paths()), draw(paths())
    number = draw(st.integers(0, 5))
    return lambda root: what(root, path, other, number)


def _clear(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def _room(root: Path, path: str) -> Path | None:
    """The path, with real folders on the way to it."""
    place = root
    for name in path.split("/")[:-1]:
        place = place / name
        if place.is_symlink() or place.is_file():
            return None
        place.mkdir(exist_ok=True)
    return root / path


def write(root: Path, path: str, other: str, number: int) -> None:
    """A new file takes the place of the old."""
    if place := _room(root, path):
        _clear(place)
        place.write_bytes(f"{other}{number}".encode() * number)


def overwrite(root: Path, path: str, other: str, number: int) -> None:
    """In place, with content of the same size."""
    place = root / path
    if place.is_file() and not place.is_symlink() and _real(root, path):
        size = place.stat().st_size
        with place.open("r+b") as file:
            file.write((f"{number}" * size).encode())


def remove(root: Path, path: str, other: str, number: int) -> None:
    if _real(root, path):
        _clear(root / path)


def move(root: Path, path: str, other: str, number: int) -> None:
    source = root / path
    target = _room(root, other)
    inside = f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")
    if target and os.path.lexists(source) and not os.path.lexists(target) and not inside and _real(root, path):
        source.rename(target)


def folder(root: Path, path: str, other: str, number: int) -> None:
    place = _room(root, path)
    if place and not place.is_symlink() and not place.exists():
        place.mkdir(mode=(0o700, 0o755, 0o750)[number % 3])


def link(root: Path, path: str, other: str, number: int) -> None:
    if place := _room(root, path):
        _clear(place)
        place.symlink_to(("a", "../..", "nowhere", "/etc")[number % 4])


def mode(root: Path, path: str, other: str, number: int) -> None:
    place = root / path
    if os.path.lexists(place) and not place.is_symlink() and _real(root, path):
        place.chmod((0o600, 0o644, 0o755, 0o700, 0o640, 0o444)[number] | (0o700 if place.is_dir() else 0))


def _real(root: Path, path: str) -> bool:
    """Whether no link is on the way: the test itself must not change what lies elsewhere."""
    folder = str((root / path).parent)
    return os.path.realpath(folder) == folder
