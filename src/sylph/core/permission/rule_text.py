"""Rules in words that a person understands."""

from collections.abc import Iterable

from sylph.core.permission.types import PermissionRule

WILDCARDS = "*?["
REDIRECT_MARK = ">"


def describe_rule(rule: PermissionRule) -> str:
    """A rule in words: `allow shell: commands that begin with "git commit"`."""
    return describe_rules((rule,))


def describe_rules(rules: Iterable[PermissionRule]) -> str:
    """Rules in words; those that differ only in what they are about are told together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        tool = "every tool" if rule.tool == "*" else rule.tool
        over = f", until {rule.until}" if rule.until else ""
        groups.setdefault((f"{rule.decision} {tool}", over), []).append(_describe_target(rule))
    return "; ".join(
        head + (f": {' and '.join(filter(None, about))}" if any(about) else "") + over
        for (head, over), about in groups.items()
    )


def _describe_target(rule: PermissionRule) -> str:
    """What it is about; empty for everything."""
    named = [
        _describe_command(rule.command),
        _describe_path(rule.path),
        _describe_host(rule.host),
        "exactly this call" if rule.digest else "",
    ]
    return " with ".join(filter(None, named))


def _describe_command(pattern: str) -> str:
    if not pattern:
        return ""
    begins = pattern.removesuffix(" *")
    if begins.startswith(REDIRECT_MARK) and not _has_wildcard(begins):
        # What a command is redirected to stands among its commands.
        return f"writing to {_quote_text(begins.removeprefix(REDIRECT_MARK))}"
    if _has_wildcard(begins):
        return f"commands like {_quote_text(pattern)}"
    return (
        f"commands that begin with {_quote_text(begins)}"
        if begins != pattern
        else f"the command {_quote_text(pattern)}"
    )


def _describe_path(pattern: str) -> str:
    if not pattern:
        return ""
    folder = pattern.removesuffix("/**")
    if folder != pattern and not _has_wildcard(folder):
        return f"everything in {_quote_text(folder + '/')}"
    return f"paths like {_quote_text(pattern)}" if _has_wildcard(pattern) else f"the path {_quote_text(pattern)}"


def _describe_host(pattern: str) -> str:
    if not pattern:
        return ""
    return f"hosts like {_quote_text(pattern)}" if _has_wildcard(pattern) else f"the host {_quote_text(pattern)}"


def _has_wildcard(pattern: str) -> bool:
    return any(char in pattern for char in WILDCARDS)


def _quote_text(text: str) -> str:
    return f'"{text}"'
