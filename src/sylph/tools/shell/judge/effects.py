"""What is found out about a command line: its worst effect, and its paths, hosts and commands."""

import fnmatch
import os
import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field

from sylph.core.permission.path_policy import PathPolicy
from sylph.core.permission.protected_path import find_protection
from sylph.core.permission.types import Effect, Risk
from sylph.core.tool import CallAssessment
from sylph.tools.shell.judge.word_expansion import ShellArg

# Reasons that mean: which commands are run cannot be told.
HIDDEN = (
    "runs a program that only", "runs a text that only", "runs a script that only", "runs a command of git that only",
    "runs what another", "runs what was", "changes what the names of commands",
)  # fmt: skip
EFFECTS: tuple[Effect, ...] = ("read", "write", "external", "self")
RISKS: tuple[Risk, ...] = ("safe", "caution", "dangerous")
SHOWN = 70
LISTED = 2000
_TYPICAL = (".env", ".netrc", "id_rsa", "id_ed25519", "server.pem", "private.key")
# Reading or writing these touches no file.
_PIPE = re.compile(r"/dev/(fd/\d+|null|stdin|stdout|stderr|tty|zero|u?random)")


class CommandEffects(Struct):
    workspace: str
    places: PathPolicy
    cwds: tuple[str, ...] | None
    """Where the shell may be; None where only the run can tell."""
    current_command: str = ""
    effect: Effect = "read"
    risk: Risk = "safe"
    why: str = ""
    reads: dict[str, None] = field(default_factory=dict[str, None])
    writes: dict[str, None] = field(default_factory=dict[str, None])
    hosts: dict[str, None] = field(default_factory=dict[str, None])
    commands: dict[str, None] = field(default_factory=dict[str, None])
    unsure: bool = False
    """Whether other commands may be run than can be read off the line."""
    external_count: int = 0
    """How often something outside of this machine was reached for."""
    _worst: tuple[int, int] = (-1, -1)

    @property
    def assessment(self) -> CallAssessment:
        return CallAssessment(
            self.effect,
            self.risk,
            self.why or "does nothing",
            reads=tuple(self.reads),
            writes=tuple(self.writes),
            hosts=tuple(self.hosts),
            commands=tuple(self.commands),
            unsure=self.unsure,
        )

    def note(self, effect: Effect, risk: Risk, reason: str) -> None:
        """The command that is looked at does this."""
        self.external_count += effect == "external"
        self.unsure = self.unsure or reason.startswith(HIDDEN)
        rank = (RISKS.index(risk), EFFECTS.index(effect))
        if rank > self._worst:
            self._worst = rank
            self.why = f"{self.quoted_command} {reason}" if self.current_command else reason
        self.effect = EFFECTS[max(EFFECTS.index(self.effect), rank[1])]
        self.risk = RISKS[max(RISKS.index(self.risk), rank[0])]

    @property
    def quoted_command(self) -> str:
        text = " ".join(self.current_command.split())
        return f"`{text if len(text) <= SHOWN else text[: SHOWN - 1] + '…'}`"

    def note_read(self, arg: ShellArg) -> None:
        """The command looks at what the argument names."""
        paths = self.resolve_paths(arg)
        if paths is None:
            self.note("read", "caution", "reads what only the run can tell")
            return
        for path in paths:
            self._note_read_path(path)

    def note_suspects(self, names: Iterable[str]) -> None:
        """The command looks for these: that matters where they are guarded."""
        for path in (path for name in names for cwd in self.cwds or () if (path := real_path(cwd, name))):
            if find_protection(path, writing=False, places=self.places):
                self._note_read_path(path)

    def likely_secrets(self, top: str, pattern: str) -> list[str]:
        """Names of secrets that a pattern would find anywhere below a folder."""
        if not any(char in pattern for char in "*?["):
            return [f"{top}/{pattern}"]
        found = [name for name in _TYPICAL if fnmatch.fnmatchcase(name, pattern)]
        dotted = pattern.startswith(".")
        return [f"{top}/{name}" for name in found if name.startswith(".") == dotted and pattern != "*"]

    def _note_read_path(self, path: str) -> None:
        if _is_stream(path):
            return
        self.reads[path] = None
        guard = find_protection(path, writing=False, places=self.places)
        if guard:
            self.note(guard.effect or "read", guard.risk, guard.why)
        elif not self.is_inside(path):
            self.note("read", "caution", f"reads {path}, outside of the workspace")

    def note_write(self, arg: ShellArg, reason: str = "writes files", risk: Risk = "caution") -> None:
        """The command makes, changes or removes what the argument names."""
        paths = self.resolve_paths(arg)
        if paths is None:
            self.note(
                "write", "dangerous" if risk == "dangerous" else "caution", f"{reason} that only the run can tell"
            )
            return
        for path in paths:
            self._note_write_path(path, reason, risk)

    def _note_write_path(self, path: str, reason: str, risk: Risk) -> None:
        if _is_stream(path):
            return
        self.writes[path] = None
        guard = find_protection(path, writing=True, places=self.places)
        if guard:
            self.note(guard.effect or "write", guard.risk, guard.why)
        if path.startswith("/dev/"):
            self.note("write", "dangerous", "writes to a device")
        elif self.is_inside(path):
            self.note("write", risk, reason)
        elif any(path.startswith(f"{top}/") for top in self.places.temporary):
            self.note(
                "write",
                "dangerous" if risk == "dangerous" else "caution",
                f"{reason} in the folder for temporary files",
            )
        else:
            self.note("write", "dangerous", f"{reason} outside of the workspace")

    def is_inside(self, path: str) -> bool:
        return path == self.workspace or path.startswith(self.workspace.rstrip("/") + "/")

    def is_root(self, path: str) -> bool:
        """Whether the path is the whole workspace, the home, or holds one of them."""
        tops = (self.workspace, str(self.places.home))
        return path == "/" or any(top == path or top.startswith(path.rstrip("/") + "/") for top in tops)

    def resolve_paths(self, arg: ShellArg) -> list[str] | None:
        """The real paths that an argument may name; None if only the run can tell."""
        if not arg.known or (self.cwds is None and not arg.text.startswith("/")):
            return None
        if _PIPE.fullmatch(arg.text):
            return []
        found = [path for cwd in self.cwds or ("/",) if (path := real_path(cwd, arg.text)) is not None]
        if not arg.pattern:
            return found
        return [each for cwd in self.cwds or ("/",) for each in self._match_pattern(cwd, arg)]

    def _match_pattern(self, cwd: str, arg: ShellArg) -> Iterable[str]:
        """The folder in which wildcards are looked for, and what they find there that is guarded."""
        head, _, tail = arg.pattern.rpartition("/")
        top = real_path(cwd, _fixed_prefix(arg.text) or ("/" if arg.text.startswith("/") else "."))
        if top is None:
            return
        yield top
        if any(char in head for char in "*?["):
            for path in (real_path(cwd, name) for name in self.likely_secrets(top, tail)):
                if path and find_protection(path, writing=False, places=self.places):
                    yield path
        if not any(char in head for char in "*?["):
            place = Path(real_path(cwd, f"{head}/" if head or arg.pattern.startswith("/") else ".") or top)
            for name in _list_names(place):
                if fnmatch.fnmatchcase(name, tail) and (tail.startswith(".") or not name.startswith(".")):
                    path = real_path(str(place), name)
                    if path and (find_protection(path, writing=False, places=self.places) or not self.is_inside(path)):
                        yield path


def real_path(cwd: str, text: str) -> str | None:
    """The path with its links followed, also where its last parts do not exist; None for what can be no path."""
    try:
        # Two slashes at the start would be kept, and mean no more than one.
        return re.sub("^//", "/", os.path.realpath(os.path.join(cwd, text)))  # noqa: PTH118
    except (OSError, ValueError):
        return None


def cd_targets(cwd: str, text: str) -> list[str]:
    """Where `cd` may lead: by the names that were used, and by the links behind them."""
    physical = real_path(cwd, text)
    named = os.path.normpath(os.path.join(cwd, text))  # noqa: PTH118
    return [named] if physical is None or real_path("/", named) == physical else [named, physical]


def _is_stream(path: str) -> bool:
    """A link may lead to one of these."""
    return bool(_PIPE.fullmatch(path)) or path.startswith("/dev/pts/")


def _fixed_prefix(text: str) -> str:
    """The folders of a path before the first one with a wildcard."""
    fixed: list[str] = []
    for part in text.split("/")[:-1]:
        if any(char in part for char in "*?["):
            break
        fixed.append(part)
    return "/".join(fixed) or ("/" if text.startswith("/") else "")


def _list_names(place: Path) -> list[str]:
    try:
        with os.scandir(place) as entries:
            return [entry.name for entry, _ in zip(entries, range(LISTED), strict=False)]
    except OSError:
        return []
