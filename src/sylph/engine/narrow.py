"""What a person's yes may cover beyond the one call: as little as is still of use."""

from collections.abc import Sequence

from sylph.core.permission import Rule
from sylph.core.tool import Judged

# Their first argument says what they do.
HANDY = frozenset(
    (
        *("apt", "brew", "bun", "cargo", "composer", "conda", "docker", "dotnet", "gh", "git", "go", "gradle", "just"),
        *("kubectl", "make", "mvn", "npm", "pip", "pip3", "pnpm", "poetry", "podman", "rake", "ruff", "rustup"),
        *("systemctl", "terraform", "tox", "uv", "yarn"),
    )
)
# They do whatever their arguments say: a pattern would allow anything.
WILD = frozenset(
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
GRAVE = frozenset(
    (
        *("chmod", "chown", "cp", "dd", "install", "kill", "killall", "ln", "mv", "pkill", "rm", "rmdir", "rsync"),
        *("shred", "tar", "tee", "truncate", "unzip"),
    )
)
LONG = 300


def session(tool: str, judged: Judged, workspace: str, digest: str, *, by_content: bool) -> tuple[Rule, ...]:
    """What `yes, for this session` allows."""
    if judged.outside:
        return ()
    if judged.commands:
        return _commands(tool, judged, digest)
    inside = all(f"{path}/".startswith(f"{workspace}/") for path in judged.writes)
    if by_content and inside and judged.risk != "dangerous":
        # The tool itself stays in the workspace; what is protected there is asked about all the same.
        return (Rule(decision="allow", tool=tool),)
    return _hosts(tool, judged) or (exact(tool, digest),)


def always(tool: str, judged: Judged, digest: str) -> tuple[Rule, ...]:
    """What `always` remembers; nothing where that could not be narrow."""
    if judged.outside or judged.risk == "dangerous":
        return ()
    if judged.commands:
        rules = _commands(tool, judged, digest)
        # A bare interpreter would be anything at all, for ever.
        bare = any(command in WILD for command in judged.commands)
        return () if bare or any(rule.digest for rule in rules) else rules
    if judged.writes and all(map(_plain, judged.writes)):
        return tuple(Rule(decision="allow", tool=tool, path=path) for path in judged.writes)
    return _hosts(tool, judged)


def exact(tool: str, digest: str) -> Rule:
    return Rule(decision="allow", tool=tool, digest=digest)


def _hosts(tool: str, judged: Judged) -> tuple[Rule, ...]:
    if not judged.hosts or judged.risk == "dangerous":
        return ()
    return tuple(Rule(decision="allow", tool=tool, host=host) for host in judged.hosts if _plain(host))


def _commands(tool: str, judged: Judged, digest: str) -> tuple[Rule, ...]:
    patterns = [_pattern(command) for command in judged.commands]
    if judged.risk == "dangerous" or not all(patterns):
        return (exact(tool, digest),)
    return tuple(Rule(decision="allow", tool=tool, command=pattern) for pattern in dict.fromkeys(patterns))


def _pattern(command: str) -> str:
    """`git commit -m x` becomes `git commit *`; empty where only the very same call could be meant."""
    words = command.split(" ")
    program = words[0].rpartition("/")[2]
    if not _plain(command) or len(command) > LONG or "=" in words[0] or not program:
        return ""
    if program in WILD or program in GRAVE or program.startswith(("python", "perl", "ruby", "node")):
        return command
    if program not in HANDY:
        return f"{words[0]} *" if _ordinary(words[:1]) else command
    if len(words) > 1 and _ordinary(words[:2]):
        return f"{words[0]} {words[1]} *"
    return command


def _ordinary(words: Sequence[str]) -> bool:
    return all(word and not word.startswith("-") for word in words)


def _plain(text: str) -> bool:
    """Whether a pattern can say exactly this."""
    return not any(char in text for char in "*?[]{}\n\\")
