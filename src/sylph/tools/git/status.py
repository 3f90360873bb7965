"""The state of a work tree, from what git prints for programs to what one reads."""

from collections.abc import Iterator

from msgspec import Struct, field

from sylph.tools.files.workspace_paths import printable_name

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


class GitStatus(Struct):
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
    def is_clean(self) -> bool:
        return not (self.conflicts or self.staged or self.changed or self.untracked)


def parse_status(data: bytes) -> GitStatus:
    """What `git status --porcelain=v2 --branch -z` said."""
    status = GitStatus()
    parts = iter(data.decode("utf-8", "replace").split("\0"))
    for part in parts:
        match part[:2]:
            case "# ":
                _parse_header(status, part[2:])
            case "1 ":
                _add_change(status, *_split_fields(part, 8))
            case "2 ":
                letters, name = _split_fields(part, 9)
                _add_change(status, letters, f"{next(parts, '?')} → {name}")
            case "u ":
                letters, name = _split_fields(part, 10)
                status.conflicts.append(f"{CONFLICTS.get(letters, letters)}: {name}")
            case "? ":
                status.untracked.append(part[2:])
            case _:
                pass
    return status


def _split_fields(part: str, fields: int) -> tuple[str, str]:
    words = part.split(" ", fields)
    return words[1], words[-1]


def _parse_header(status: GitStatus, said: str) -> None:
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


def _add_change(status: GitStatus, letters: str, name: str) -> None:
    for letter, where in zip(letters, (status.staged, status.changed), strict=True):
        if letter != ".":
            where.append(f"{CHANGES.get(letter, letter)}: {name}")


def render_status(status: GitStatus, underway: str = "") -> str:
    return "\n".join(_status_lines(status, underway))


def _status_lines(status: GitStatus, underway: str) -> Iterator[str]:
    born = "" if status.commit != "(initial)" else ", no commit yet"
    where = f"detached at {status.commit[:12]}" if status.branch == "(detached)" else f"branch {status.branch}{born}"
    yield f"On {where}{_upstream_note(status)}"
    if underway:
        yield f"A {underway} is under way."
    yield from _list_names("Conflicts", status.conflicts)
    yield from _list_names("Staged", status.staged)
    yield from _list_names("Not staged", status.changed)
    yield from _list_names("Untracked", status.untracked)
    if status.is_clean:
        yield "Nothing to commit: the work tree is clean."
    if status.stashes:
        yield f"Stashes: {status.stashes}"


def _upstream_note(status: GitStatus) -> str:
    if not status.upstream:
        return ""
    apart = [f"{status.ahead} ahead"] * bool(status.ahead) + [f"{status.behind} behind"] * bool(status.behind)
    return f", {' and '.join(apart)} of {status.upstream}" if apart else f", even with {status.upstream}"


def _list_names(title: str, names: list[str]) -> Iterator[str]:
    if names:
        yield f"{title} ({len(names)}):"
        yield from (f"  {printable_name(name)}" for name in names[:SHOWN])
    if len(names) > SHOWN:
        yield f"  … and {len(names) - SHOWN} more"
