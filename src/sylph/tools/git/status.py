"""The state of a work tree, from what git prints for programs to what one reads."""

from collections.abc import Iterator

from msgspec import Struct, field

from sylph.tools.workspace import printable

ARGUMENTS = ("status", "--porcelain=v2", "--branch", "--show-stash", "-z")
CHANGES = {"M": "modified", "T": "type changed", "A": "new", "D": "deleted", "R": "renamed", "C": "copied"}
CONFLICTS = {
    "DD": "both deleted",
    "AU": "added by us",
    "UD": "deleted by them",
    "UA": "added by them",
    "DU": "deleted by us",
    "AA": "both added",
    "UU": "both modified",
}
# More names than this do not help; their number does.
SHOWN = 50


class Status(Struct):
    branch: str = ""
    commit: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    stashes: int = 0
    conflicts: list[str] = field(default_factory=list[str])
    staged: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    untracked: list[str] = field(default_factory=list[str])

    @property
    def clean(self) -> bool:
        return not (self.conflicts or self.staged or self.changed or self.untracked)


def read(data: bytes) -> Status:
    """What `git status --porcelain=v2 --branch -z` said."""
    status = Status()
    parts = iter(data.decode("utf-8", "replace").split("\0"))
    for part in parts:
        match part[:2]:
            case "# ":
                _head(status, part[2:])
            case "1 ":
                _change(status, *_split(part, 8))
            case "2 ":
                letters, name = _split(part, 9)
                _change(status, letters, f"{next(parts, '?')} → {name}")
            case "u ":
                letters, name = _split(part, 10)
                status.conflicts.append(f"{CONFLICTS.get(letters, letters)}: {name}")
            case "? ":
                status.untracked.append(part[2:])
            case _:
                pass
    return status


def _split(part: str, fields: int) -> tuple[str, str]:
    words = part.split(" ", fields)
    return words[1], words[-1]


def _head(status: Status, said: str) -> None:
    key, _, value = said.partition(" ")
    match key:
        case "branch.oid":
            status.commit = value
        case "branch.head":
            status.branch = value
        case "branch.upstream":
            status.upstream = value
        case "branch.ab":
            ahead, behind = value.split()
            status.ahead, status.behind = int(ahead), -int(behind)
        case "stash":
            status.stashes = int(value)
        case _:
            pass


def _change(status: Status, letters: str, name: str) -> None:
    for letter, where in zip(letters, (status.staged, status.changed), strict=True):
        if letter != ".":
            where.append(f"{CHANGES.get(letter, letter)}: {name}")


def told(status: Status, underway: str = "") -> str:
    return "\n".join(_lines(status, underway))


def _lines(status: Status, underway: str) -> Iterator[str]:
    born = "" if status.commit != "(initial)" else ", no commit yet"
    where = f"detached at {status.commit[:12]}" if status.branch == "(detached)" else f"branch {status.branch}{born}"
    yield f"On {where}{_beside(status)}"
    if underway:
        yield f"A {underway} is under way."
    yield from _listed("Conflicts", status.conflicts)
    yield from _listed("Staged", status.staged)
    yield from _listed("Not staged", status.changed)
    yield from _listed("Untracked", status.untracked)
    if status.clean:
        yield "Nothing to commit: the work tree is clean."
    if status.stashes:
        yield f"Stashes: {status.stashes}"


def _beside(status: Status) -> str:
    if not status.upstream:
        return ""
    apart = [f"{status.ahead} ahead"] * bool(status.ahead) + [f"{status.behind} behind"] * bool(status.behind)
    return f", {' and '.join(apart)} of {status.upstream}" if apart else f", even with {status.upstream}"


def _listed(title: str, names: list[str]) -> Iterator[str]:
    if names:
        yield f"{title} ({len(names)}):"
        yield from (f"  {printable(name)}" for name in names[:SHOWN])
    if len(names) > SHOWN:
        yield f"  … and {len(names) - SHOWN} more"
