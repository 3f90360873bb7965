"""Rules in words that a person understands."""

from collections.abc import Iterable

from sylph.core.permission import Rule

WILD = "*?["
OUTPUT = ">"


def told(rule: Rule) -> str:
    """A rule in words: `allow shell: commands that begin with "git commit"`."""
    return all_told((rule,))


def all_told(rules: Iterable[Rule]) -> str:
    """Rules in words; those that differ only in what they are about are told together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        tool = "every tool" if rule.tool == "*" else rule.tool
        over = f", until {rule.until}" if rule.until else ""
        groups.setdefault((f"{rule.decision} {tool}", over), []).append(_about(rule))
    return "; ".join(
        head + (f": {' and '.join(filter(None, about))}" if any(about) else "") + over
        for (head, over), about in groups.items()
    )


def _about(rule: Rule) -> str:
    """What it is about; empty for everything."""
    named = [_command(rule.command), _path(rule.path), _host(rule.host), "exactly this call" if rule.digest else ""]
    return " with ".join(filter(None, named))


def _command(pattern: str) -> str:
    if not pattern:
        return ""
    begins = pattern.removesuffix(" *")
    if begins.startswith(OUTPUT) and not _wild(begins):
        # What a command is redirected to stands among its commands.
        return f"writing to {_quoted(begins.removeprefix(OUTPUT))}"
    if _wild(begins):
        return f"commands like {_quoted(pattern)}"
    return f"commands that begin with {_quoted(begins)}" if begins != pattern else f"the command {_quoted(pattern)}"


def _path(pattern: str) -> str:
    if not pattern:
        return ""
    folder = pattern.removesuffix("/**")
    if folder != pattern and not _wild(folder):
        return f"everything in {_quoted(folder + '/')}"
    return f"paths like {_quoted(pattern)}" if _wild(pattern) else f"the path {_quoted(pattern)}"


def _host(pattern: str) -> str:
    if not pattern:
        return ""
    return f"hosts like {_quoted(pattern)}" if _wild(pattern) else f"the host {_quoted(pattern)}"


def _wild(pattern: str) -> bool:
    return any(char in pattern for char in WILD)


def _quoted(text: str) -> str:
    return f'"{text}"'
