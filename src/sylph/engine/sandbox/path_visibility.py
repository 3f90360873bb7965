"""Where things lie on this machine: what a command must not see, and what it cannot do without."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from sylph.engine.sandbox.policy import SandboxPolicy

# Folders of everybody: sockets of agents and services, other sessions' temporary files.
SHARED_FOLDERS = ("/tmp", "/var/tmp", "/run")
# What programs under the home folder need to run, and who commits are by.
TOOL_FOLDERS = (
    ".asdf", ".bun", ".cargo", ".config/git", ".deno", ".ghcup", ".gitconfig", ".local/bin", ".local/lib",
    ".local/pipx", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm", ".local/share/uv", ".nvm", ".pyenv",
    ".rbenv", ".rustup", ".sdkman", ".volta", "go/bin",
)  # fmt: skip
SECRET_PATHS = (
    ".aws", ".azure", ".bash_history", ".boto", ".cargo/credentials", ".cargo/credentials.toml",
    ".claude/.credentials.json", ".codex/auth.json", ".config/chromium", ".config/containers/auth.json",
    ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/github-copilot", ".config/google-chrome",
    ".config/op", ".config/rclone", ".docker", ".gem/credentials", ".gemini/oauth_creds.json", ".git-credentials",
    ".gnupg", ".gradle/gradle.properties", ".kube", ".local/share/keyrings", ".m2/settings.xml", ".mozilla",
    ".my.cnf", ".mysql_history", ".netrc", ".npmrc", ".password-store", ".pgpass", ".psql_history", ".pypirc",
    ".python_history", ".qwen/oauth_creds.json", ".s3cfg", ".ssh", ".terraform.d/credentials.tfrc.json",
    ".vault-token", ".zsh_history",
)  # fmt: skip
# Only root can read these, and a sandboxed root still is one to the files.
ROOT_ONLY_PATHS = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
)
RESOLVER_FOLDER = "/run/systemd/resolve"
BINARY_FOLDERS = ("bin", "sbin", "shims")


class PathVisibility(Struct, frozen=True):
    """What is the same for every command of a Sylph: found out once."""

    home: str
    """The home folder; empty where there is none that could be hidden."""
    hidden: tuple[str, ...]
    shown: tuple[str, ...]
    """Inside of what is hidden, and to be seen all the same."""
    secret: tuple[str, ...]
    """To be masked wherever it would be seen."""


def survey_paths(terms: SandboxPolicy) -> PathVisibility:
    home = os.path.realpath(terms.home)
    hideable = os.path.isdir(home) and home != "/"
    hidden = tuple(path for path in (*SHARED_FOLDERS, *((home,) if hideable else ())) if os.path.isdir(path))
    shown = [
        path for path in dict.fromkeys(_visible_paths(terms, home)) if is_within(path, hidden) and os.path.exists(path)
    ]
    secret = [
        *(str(path) for path in terms.guarded),
        *(f"{home}/{name}" for name in SECRET_PATHS),
        *(ROOT_ONLY_PATHS if os.geteuid() == 0 else ()),
    ]
    there = tuple(os.path.realpath(path) for path in secret if os.path.exists(path))
    # Nothing that is shown may be, or lie in, what is secret; what lies in another shown one is shown with it.
    tops = [
        path
        for path in shown
        if not is_within(path, there) and not is_within(path, [one for one in shown if one != path])
    ]
    return PathVisibility(home if hideable else "", hidden, tuple(tops), there)


def _visible_paths(terms: SandboxPolicy, home: str) -> Iterator[str]:
    yield from (str(path) for path in terms.read)
    yield from (f"{home}/{name}" for name in TOOL_FOLDERS)
    # Tools have programs of their own in Sylph's folder.
    yield from (sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[2]))
    for folder in terms.path.split(os.pathsep):
        if Path(folder).is_absolute():
            yield _program_root(Path(folder))


def _program_root(folder: Path) -> str:
    """The folder a program's files lie in: of `x/bin` it is `x`, where that is made for one program."""
    above = folder.parent
    # Not by `Path`: that raises where a folder may not be looked into, and `PATH` may name other people's.
    own = os.path.exists(above / "pyvenv.cfg") or os.path.isdir(above / "lib")
    return str(above if own and folder.name in BINARY_FOLDERS else folder)


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of `folders`, or in one of them."""
    return any(path == folder or path.startswith(f"{folder}/") or folder == "/" for folder in folders)
