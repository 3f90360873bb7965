"""Rules on disk: the user's, those Sylph was told to remember, and a project's own."""

import contextlib
import fcntl
import json
import os
import tomllib
from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec

from sylph.core.errors import UserError
from sylph.core.permission.rules import RuleFile, WorkspaceRules, check_rule
from sylph.core.permission.types import PermissionRule

FILE_HEADER = "# Rules that you told Sylph to remember. `sylph policy` shows them all; the first that fits decides.\n"
PROJECT_RULES_FILE = Path(".sylph", "rules.toml")


class FileRuleStore:
    """core.rules.Rulebook over files. Each is read again when it has changed."""

    def __init__(self, told: Sequence[PermissionRule], remembered: Path) -> None:
        self._told, self._file = tuple(told), remembered
        self._read: dict[Path, tuple[tuple[int, int, int], tuple[PermissionRule, ...]]] = {}

    @property
    def file(self) -> Path:
        return self._file

    def read(self, workspace: Path) -> WorkspaceRules:
        # What the config file says comes first: it was written with thought.
        user = (*self._told, *self._load_rules(self._file))
        try:
            return WorkspaceRules(user, self._load_rules(workspace / PROJECT_RULES_FILE))
        except UserError as error:
            return WorkspaceRules(user, (), f"the project's rules cannot be read ({error})")

    def remember(self, rules: Sequence[PermissionRule]) -> None:
        with self._hold_lock():
            known = self._load_rules(self._file)
            self._write_rules((*known, *(rule for rule in rules if rule not in known)))

    def forget_rule(self, number: int) -> PermissionRule:
        """Takes a remembered rule out, counted from 1."""
        with self._hold_lock():
            known = list(self._load_rules(self._file))
            if not 1 <= number <= len(known):
                raise UserError(f"There is no remembered rule {number}.", kind="not_found", next=["sylph policy"])
            gone = known.pop(number - 1)
            self._write_rules(known)
        return gone

    def replace_rules(self, rules: Sequence[PermissionRule]) -> None:
        """Puts others in the place of all that are remembered."""
        with self._hold_lock():
            self._write_rules(rules)

    def remembered_rules(self) -> tuple[PermissionRule, ...]:
        return self._load_rules(self._file)

    def _load_rules(self, file: Path) -> tuple[PermissionRule, ...]:
        try:
            stat = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except ValueError as error:
            # A name that no file can have.
            raise _rules_file_error(file, str(error)) from error
        except OSError as error:
            raise _rules_file_error(file, error.strerror or str(error)) from error
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = self._read.get(file)
        if known is None or known[0] != stamp:
            known = self._read[file] = (stamp, parse_rules_file(file))
        return known[1]

    @contextlib.contextmanager
    def _hold_lock(self) -> Generator[None]:
        """Two processes may be told to remember something at the same time."""
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write_rules(self, rules: Sequence[PermissionRule]) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(FILE_HEADER + "".join(map(_render_table, rules)), encoding="utf-8")
        fresh.chmod(0o600)
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(self._file)


def parse_rules_file(file: Path) -> tuple[PermissionRule, ...]:
    try:
        if file.stat().st_size > 1_000_000:
            raise _rules_file_error(file, "it is larger than 1 MB")
        rules = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), RuleFile).rules
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _rules_file_error(file, str(error)) from error
    for number, rule in enumerate(rules, 1):
        if wrong := check_rule(rule):
            raise _rules_file_error(file, f"rule {number}: {wrong}")
    return rules


def _rules_file_error(file: Path, why: str) -> UserError:
    return UserError(f"{file}: {why}", kind="config", next=[f"Mend or remove {file}.", "sylph policy --help"])


def _render_table(rule: PermissionRule) -> str:
    values = msgspec.to_builtins(rule)
    rows = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n[[rules]]\n" + "\n".join(rows) + "\n"
