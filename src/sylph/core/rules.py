"""A person's rules about calls: allow, ask or deny by tool, path, command and host."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

from msgspec import Meta, Struct

from sylph.core.errors import ToolError
from sylph.core.globs import matcher
from sylph.core.permission import Decision, Rule

ITEMS = ("command", "path", "host")
# Options of git itself that are followed by a value.
GIT_VALUES = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source")
STRICT: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}


class Subject(NamedTuple):
    """What rules are held against: a call, and what it would touch."""

    tool: str
    workspace: str = ""
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    digest: str = ""


class Rules(NamedTuple):
    """All rules for one workspace, each list in its order. A project's file can only make things stricter."""

    user: tuple[Rule, ...] = ()
    project: tuple[Rule, ...] = ()
    trouble: str = ""
    """Why the project's rules cannot be read; until they can, every effect is asked about."""


class Rulebook(Protocol):
    """Where rules are kept."""

    def read(self, workspace: Path) -> Rules: ...

    def remember(self, rules: Sequence[Rule]) -> None:
        """Keeps rules for all sessions to come."""
        ...


class NoRules:
    """A rulebook that is always empty."""

    def read(self, workspace: Path) -> Rules:  # noqa: ARG002 - the protocol's
        return Rules()

    def remember(self, rules: Sequence[Rule]) -> None:
        pass


def first(rules: Iterable[Rule], subject: Subject) -> Rule | None:
    """The rule that decides, if one does.

    A rule that asks or denies decides as soon as it is about anything the call touches. One that allows decides only
    when it, and those that allow before it, are about everything of that kind: one harmless part excuses no other.
    """
    left = {item: set(_items(subject, item)) for item in ITEMS}
    for rule in rules:
        if not fnmatchcase(subject.tool, rule.tool) or (rule.digest and rule.digest != subject.digest):
            continue
        if rule.decision == "allow" and _covers(rule, subject, left):
            return rule
        if rule.decision != "allow" and _touches(rule, subject):
            return rule
    return None


def stricter(one: Decision, other: Decision) -> Decision:
    return max(one, other, key=STRICT.__getitem__)


def live(rules: Iterable[Rule], now: int) -> tuple[Rule, ...]:
    """Those that are not over yet."""
    return tuple(rule for rule in rules if not rule.until or _moment(rule.until) > now)


def wide(rule: Rule) -> bool:
    """Whether it allows more than calls that are named in full."""
    return not rule.digest and not (rule.command and "*" not in rule.command and "?" not in rule.command)


def noted(rule: Rule) -> str:
    """A rule as the log notes it: changed, old sessions could not be replayed. `rule_words` is for people."""
    about = [f"{item} {value}" for item in ITEMS if (value := getattr(rule, item))]
    about += ["exactly this call"] if rule.digest else []
    over = f" until {rule.until}" if rule.until else ""
    return f"{rule.decision} {rule.tool}" + (f": {', '.join(about)}" if about else "") + over


def stamp(now: int) -> str:
    """A moment as `until` writes it."""
    return datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="seconds")


def _covers(rule: Rule, subject: Subject, left: dict[str, set[str]]) -> bool:
    wanted = _wanted(rule)
    if not wanted:
        return True
    if subject.commands and "command" not in wanted:
        # A command can touch more than the paths and hosts that can be read off it.
        return False
    for item in wanted:
        items = _items(subject, item)
        matched = {each for each in items if _matches(rule, item, each, subject)}
        if len(wanted) > 1:
            if not items or matched != set(items):
                return False
            continue
        left[item] -= matched
        if not items or left[item] or not matched:
            return False
    return True


def _touches(rule: Rule, subject: Subject) -> bool:
    return all(any(_matches(rule, item, each, subject) for each in _named(subject, item)) for item in _wanted(rule))


def _named(subject: Subject, item: str) -> tuple[str, ...]:
    """What a rule that forbids is held against: commands by every name they go by."""
    items = _items(subject, item)
    return tuple(name for each in items for name in spoken(each)) if item == "command" else items


def spoken(command: str) -> tuple[str, ...]:
    """A command as it stands, without the way to its program, and git's without what comes before its own command."""
    program, _, rest = command.partition(" ")
    plain = f"{program.rpartition('/')[2]} {rest}".rstrip()
    return tuple(dict.fromkeys((command, plain, _git(plain))))


def _git(command: str) -> str:
    program, *words = command.split(" ")
    if program != "git":
        return command
    while words and words[0].startswith("-"):
        takes = words[0] in GIT_VALUES
        words = words[2 if takes else 1 :]
    return " ".join([program, *words])


def _wanted(rule: Rule) -> list[str]:
    return [item for item in ITEMS if getattr(rule, item)]


def _items(subject: Subject, item: str) -> tuple[str, ...]:
    return {"command": subject.commands, "path": subject.paths, "host": subject.hosts}[item]


def _matches(rule: Rule, item: str, value: str, subject: Subject) -> bool:
    if item == "command":
        return fnmatchcase(value, rule.command) or fnmatchcase(f"{value} ", rule.command)
    if item == "host":
        return fnmatchcase(value.lower().rstrip("."), rule.host.lower())
    return _path(rule.path, subject.workspace)(value)


@lru_cache(maxsize=512)
def _path(pattern: str, workspace: str) -> Callable[[str], bool]:
    """Whether a path matches: a pattern that begins with neither / nor ~ is about the workspace."""
    if pattern.startswith("~"):
        pattern = str(Path(pattern).expanduser())
    if not pattern.startswith("/") and "/" not in pattern:
        return matcher(pattern)
    whole = pattern if pattern.startswith("/") else f"{workspace}/{pattern}"
    folder = whole.removesuffix("/**")
    wanted = matcher(whole)
    return lambda path: wanted(path.lstrip("/")) or (folder != whole and path == folder)


def check(rule: Rule) -> str:
    """What is wrong with a rule, if anything is."""
    if not rule.tool:
        return "it fits no tool: leave the name out to fit all"
    if rule.command and not rule.command.strip():
        return "its command is only blanks"
    try:
        _path(rule.path, "/")
    except ToolError as error:
        return str(error)
    try:
        _moment(rule.until or "2000-01-01")
    except ValueError:
        return f"{rule.until!r} is not a date, like 2030-01-31"
    return ""


def _moment(until: str) -> int:
    moment = datetime.fromisoformat(until)
    if len(until) == len("2030-01-31"):
        # A day counts to its end.
        moment += timedelta(days=1)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


class RuleFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of rules."""

    rules: Annotated[tuple[Rule, ...], Meta(description="The first that fits decides.")] = ()
