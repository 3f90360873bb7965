"""A repository as its own files show it, read without running anything."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
ENTRY = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*?)\s*")
LARGEST = 1_000_000
# What is under way, by the file that says so.
UNDERWAY = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}


class GitRepository(Struct, frozen=True):
    folder: Path
    """Git's own folder of this work tree."""
    branch: str = ""
    remotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The addresses of each remote."""
    upstreams: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def default_remote(self) -> str:
        """Where the current branch goes when nothing else is said."""
        only = next(iter(self.remotes), "") if len(self.remotes) == 1 else ""
        return self.upstreams.get(self.branch) or only or "origin"

    @property
    def underway(self) -> str:
        return next((what for name, what in UNDERWAY.items() if (self.folder / name).exists()), "")


def find_repository(place: Path) -> GitRepository | None:
    """The repository that `place` lies in."""
    for folder in (place, *place.parents):
        git = _git_folder(folder / ".git")
        if git:
            return _read_repository(git)
    return None


def _git_folder(path: Path) -> Path | None:
    if path.is_dir():
        return path
    text = _read_text(path)
    # A work tree of its own, or a submodule: the folder is elsewhere.
    return Path(os.path.normpath(path.parent / text[8:].strip())) if text.startswith("gitdir: ") else None


def _read_repository(folder: Path) -> GitRepository:
    shared = _read_text(folder / "commondir").strip()
    common = Path(os.path.normpath(folder / shared)) if shared else folder
    head = _read_text(folder / "HEAD").strip()
    remotes, upstreams = dict[str, tuple[str, ...]](), dict[str, str]()
    section = name = ""
    for line in _read_text(common / "config").splitlines():
        if start := SECTION.match(line):
            section, name = start[1].lower(), start[2] or ""
        elif entry := ENTRY.fullmatch(line):
            key, value = entry[1].lower(), entry[2].strip('"')
            if (section, key) in (("remote", "url"), ("remote", "pushurl")):
                remotes[name] = (*remotes.get(name, ()), value)
            elif (section, key) == ("branch", "remote"):
                upstreams[name] = value
    branch = head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""
    return GitRepository(folder, branch, remotes, upstreams)


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
