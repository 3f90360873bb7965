"""The scratch folder of one kill: where everything of it lies, and what it is about."""

from pathlib import Path

import msgspec
from msgspec import Struct


class TrialSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a process under test is told: what to play, and where it is to die."""

    scenario: str
    port: int
    path: str
    kind: str = ""
    at: int = 0
    recovering: bool = False


class ScratchFolder(Struct, frozen=True):
    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def store(self) -> Path:
        return self.root / "data" / "events.db"

    @property
    def acks(self) -> Path:
        """One line for each thing that was promised to the person."""
        return self.root / "acks"

    @property
    def lost(self) -> Path:
        """One line for each promise that was not found in the log when a recovery began."""
        return self.root / "lost"

    @property
    def diverged(self) -> Path:
        """Where a replay of what was recovered comes out differently, if it does."""
        return self.root / "diverged"

    @property
    def counts(self) -> Path:
        return self.root / "counts.json"

    @property
    def setting(self) -> Path:
        return self.root / "setting.json"

    @property
    def errors(self) -> Path:
        return self.root / "errors.txt"

    def prepare(self, setting: TrialSetting) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        self.setting.write_bytes(msgspec.json.encode(setting))


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
