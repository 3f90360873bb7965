"""A person's rules about calls: allow, ask or deny by tool, path, command and host."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

from msgspec import Meta, Struct

from sylph.core.errors import ToolError
from sylph.core.permission.glob_pattern import glob_matcher
from sylph.core.permission.types import Decision, PermissionRule

RULE_ITEMS = ("command", "path", "host")
# Options of git itself that are followed by a value.
GIT_VALUE_OPTIONS = (
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--super-prefix",
    "--attr-source",
)
STRICTNESS: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}


class RuleSubject(NamedTuple):
    """What rules are held against: a call, and what it would touch."""

    tool: str
    workspace: str = ""
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    digest: str = ""


class WorkspaceRules(NamedTuple):
    """All rules for one workspace, each list in its order. A project's file can only make things stricter."""

    user: tuple[PermissionRule, ...] = ()
    project: tuple[PermissionRule, ...] = ()
    trouble: str = ""
    """Why the project's rules cannot be read; until they can, every effect is asked about."""


class RuleStore(Protocol):
    """Where rules are kept."""

    def read(self, workspace: Path) -> WorkspaceRules: ...

    def remember(self, rules: Sequence[PermissionRule]) -> None:
        """Keeps rules for all sessions to come."""
        ...


class EmptyRuleStore:
    """A rulebook that is always empty."""

    def read(self, workspace: Path) -> WorkspaceRules:  # noqa: ARG002 - the protocol's
        return WorkspaceRules()

    def remember(self, rules: Sequence[PermissionRule]) -> None:
        pass


def find_rule(rules: Iterable[PermissionRule], subject: RuleSubject) -> PermissionRule | None:
    """The rule that decides, if one does.

    A rule that asks or denies decides as soon as it is about anything the call touches. One that allows decides only
    when it, and those that allow before it, are about everything of that kind: one harmless part excuses no other.
    """
    left = {item: set(_items_of_subject(subject, item)) for item in RULE_ITEMS}
    for rule in rules:
        if not fnmatchcase(subject.tool, rule.tool) or (rule.digest and rule.digest != subject.digest):
            continue
        if rule.decision == "allow" and _covers_subject(rule, subject, left):
            return rule
        if rule.decision != "allow" and _touches_subject(rule, subject):
            return rule
    return None


def stricter_decision(one: Decision, other: Decision) -> Decision:
    return max(one, other, key=STRICTNESS.__getitem__)


def unexpired_rules(rules: Iterable[PermissionRule], now: int) -> tuple[PermissionRule, ...]:
    """Those that are not over yet."""
    return tuple(rule for rule in rules if not rule.until or _expiry_ms(rule.until) > now)


def is_broad(rule: PermissionRule) -> bool:
    """Whether it allows more than calls that are named in full."""
    return not rule.digest and not (rule.command and "*" not in rule.command and "?" not in rule.command)


def format_for_log(rule: PermissionRule) -> str:
    """A rule as the log notes it: changed, old sessions could not be replayed. `rule_words` is for people."""
    about = [f"{item} {value}" for item in RULE_ITEMS if (value := getattr(rule, item))]
    about += ["exactly this call"] if rule.digest else []
    over = f" until {rule.until}" if rule.until else ""
    return f"{rule.decision} {rule.tool}" + (f": {', '.join(about)}" if about else "") + over


def format_until(now: int) -> str:
    """A moment as `until` writes it."""
    return datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="seconds")


def _covers_subject(rule: PermissionRule, subject: RuleSubject, left: dict[str, set[str]]) -> bool:
    wanted = _items_of_rule(rule)
    if not wanted:
        return True
    if subject.commands and "command" not in wanted:
        # A command can touch more than the paths and hosts that can be read off it.
        return False
    for item in wanted:
        items = _items_of_subject(subject, item)
        matched = {each for each in items if _item_matches(rule, item, each, subject)}
        if len(wanted) > 1:
            if not items or matched != set(items):
                return False
            continue
        left[item] -= matched
        if not items or left[item] or not matched:
            return False
    return True


def _touches_subject(rule: PermissionRule, subject: RuleSubject) -> bool:
    return all(
        any(_item_matches(rule, item, each, subject) for each in _names_of_item(subject, item))
        for item in _items_of_rule(rule)
    )


def _names_of_item(subject: RuleSubject, item: str) -> tuple[str, ...]:
    """What a rule that forbids is held against: commands by every name they go by."""
    items = _items_of_subject(subject, item)
    return tuple(name for each in items for name in command_aliases(each)) if item == "command" else items


def command_aliases(command: str) -> tuple[str, ...]:
    """A command as it stands, without the way to its program, and git's without what comes before its own command."""
    program, _, rest = command.partition(" ")
    plain = f"{program.rpartition('/')[2]} {rest}".rstrip()
    return tuple(dict.fromkeys((command, plain, _strip_git_options(plain))))


def _strip_git_options(command: str) -> str:
    program, *words = command.split(" ")
    if program != "git":
        return command
    while words and words[0].startswith("-"):
        takes = words[0] in GIT_VALUE_OPTIONS
        words = words[2 if takes else 1 :]
    return " ".join([program, *words])


def _items_of_rule(rule: PermissionRule) -> list[str]:
    return [item for item in RULE_ITEMS if getattr(rule, item)]


def _items_of_subject(subject: RuleSubject, item: str) -> tuple[str, ...]:
    return {"command": subject.commands, "path": subject.paths, "host": subject.hosts}[item]


def _item_matches(rule: PermissionRule, item: str, value: str, subject: RuleSubject) -> bool:
    if item == "command":
        return fnmatchcase(value, rule.command) or fnmatchcase(f"{value} ", rule.command)
    if item == "host":
        return fnmatchcase(value.lower().rstrip("."), rule.host.lower())
    return _path_matcher(rule.path, subject.workspace)(value)


@lru_cache(maxsize=512)
def _path_matcher(pattern: str, workspace: str) -> Callable[[str], bool]:
    """Whether a path matches: a pattern that begins with neither / nor ~ is about the workspace."""
    if pattern.startswith("~"):
        pattern = str(Path(pattern).expanduser())
    if not pattern.startswith("/") and "/" not in pattern:
        return glob_matcher(pattern)
    whole = pattern if pattern.startswith("/") else f"{workspace}/{pattern}"
    folder = whole.removesuffix("/**")
    wanted = glob_matcher(whole)
    return lambda path: wanted(path.lstrip("/")) or (folder != whole and path == folder)


def check_rule(rule: PermissionRule) -> str:
    """What is wrong with a rule, if anything is."""
    if not rule.tool:
        return "it fits no tool: leave the name out to fit all"
    if rule.command and not rule.command.strip():
        return "its command is only blanks"
    try:
        _path_matcher(rule.path, "/")
    except ToolError as error:
        return str(error)
    try:
        _expiry_ms(rule.until or "2000-01-01")
    except ValueError:
        return f"{rule.until!r} is not a date, like 2030-01-31"
    return ""


def _expiry_ms(until: str) -> int:
    moment = datetime.fromisoformat(until)
    if len(until) == len("2030-01-31"):
        # A day counts to its end.
        moment += timedelta(days=1)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


class RuleFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of rules."""

    rules: Annotated[tuple[PermissionRule, ...], Meta(description="The first that fits decides.")] = ()
