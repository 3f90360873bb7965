"""What a person's yes may cover beyond the one call: as little as is still of use."""

from collections.abc import Sequence

from sylph.core.permission.types import PermissionRule
from sylph.core.tool import CallAssessment

# Their first argument says what they do.
SUBCOMMAND_PROGRAMS = frozenset(
    (
        *("apt", "brew", "bun", "cargo", "composer", "conda", "docker", "dotnet", "gh", "git", "go", "gradle", "just"),
        *("kubectl", "make", "mvn", "npm", "pip", "pip3", "pnpm", "poetry", "podman", "rake", "ruff", "rustup"),
        *("systemctl", "terraform", "tox", "uv", "yarn"),
    )
)
# They do whatever their arguments say: a pattern would allow anything.
ARBITRARY_PROGRAMS = frozenset(
    (
        *("ash", "awk", "bash", "busybox", "csh", "dash", "deno", "doas", "env", "eval", "exec", "expect", "fish"),
        *("find", "gawk", "ksh", "lua", "mawk", "nice", "node", "nohup", "npx", "parallel", "perl", "php", "python"),
        *(
            "python3",
            "rlwrap",
            "ruby",
            "sed",
            "setsid",
            "sh",
            "ssh",
            "stdbuf",
            "su",
            "sudo",
            "time",
            "timeout",
            "uvx",
            "watch",
        ),
        *("xargs", "zsh"),
    )
)
# What they destroy is in their arguments: a pattern would allow everything else.
DESTRUCTIVE_PROGRAMS = frozenset(
    (
        *("chmod", "chown", "cp", "dd", "install", "kill", "killall", "ln", "mv", "pkill", "rm", "rmdir", "rsync"),
        *("shred", "tar", "tee", "truncate", "unzip"),
    )
)
LONGEST_COMMAND = 300


def session_grants(
    tool: str, judged: CallAssessment, workspace: str, digest: str, *, by_content: bool
) -> tuple[PermissionRule, ...]:
    """What `yes, for this session` allows."""
    if judged.outside:
        return ()
    if judged.commands:
        return _command_rules(tool, judged, digest)
    inside = all(f"{path}/".startswith(f"{workspace}/") for path in judged.writes)
    if by_content and inside and judged.risk != "dangerous":
        # The tool itself stays in the workspace; what is protected there is asked about all the same.
        return (PermissionRule(decision="allow", tool=tool),)
    return _host_rules(tool, judged) or (exact_rule(tool, digest),)


def permanent_rules(tool: str, judged: CallAssessment, digest: str) -> tuple[PermissionRule, ...]:
    """What `always` remembers; nothing where that could not be narrow."""
    if judged.outside or judged.risk == "dangerous":
        return ()
    if judged.commands:
        rules = _command_rules(tool, judged, digest)
        # A bare interpreter would be anything at all, for ever.
        bare = any(command in ARBITRARY_PROGRAMS for command in judged.commands)
        return () if bare or any(rule.digest for rule in rules) else rules
    if judged.writes and all(map(_is_literal, judged.writes)):
        return tuple(PermissionRule(decision="allow", tool=tool, path=path) for path in judged.writes)
    return _host_rules(tool, judged)


def exact_rule(tool: str, digest: str) -> PermissionRule:
    return PermissionRule(decision="allow", tool=tool, digest=digest)


def _host_rules(tool: str, judged: CallAssessment) -> tuple[PermissionRule, ...]:
    if not judged.hosts or judged.risk == "dangerous":
        return ()
    return tuple(PermissionRule(decision="allow", tool=tool, host=host) for host in judged.hosts if _is_literal(host))


def _command_rules(tool: str, judged: CallAssessment, digest: str) -> tuple[PermissionRule, ...]:
    patterns = [_command_pattern(command) for command in judged.commands]
    if judged.risk == "dangerous" or not all(patterns):
        return (exact_rule(tool, digest),)
    return tuple(PermissionRule(decision="allow", tool=tool, command=pattern) for pattern in dict.fromkeys(patterns))


def _command_pattern(command: str) -> str:
    """`git commit -m x` becomes `git commit *`; empty where only the very same call could be meant."""
    words = command.split(" ")
    program = words[0].rpartition("/")[2]
    if not _is_literal(command) or len(command) > LONGEST_COMMAND or "=" in words[0] or not program:
        return ""
    if (
        program in ARBITRARY_PROGRAMS
        or program in DESTRUCTIVE_PROGRAMS
        or program.startswith(("python", "perl", "ruby", "node"))
    ):
        return command
    if program not in SUBCOMMAND_PROGRAMS:
        return f"{words[0]} *" if _are_plain_words(words[:1]) else command
    if len(words) > 1 and _are_plain_words(words[:2]):
        return f"{words[0]} {words[1]} *"
    return command


def _are_plain_words(words: Sequence[str]) -> bool:
    return all(word and not word.startswith("-") for word in words)


def _is_literal(text: str) -> bool:
    """Whether a pattern can say exactly this."""
    return not any(char in text for char in "*?[]{}\n\\")
