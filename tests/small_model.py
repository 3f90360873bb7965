"""The real small model for tests: `./check` installs it beside the tools, as `sylph models install small` does."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from sylph.providers.local import packages
from sylph.providers.local.models import LocalEndpoint, LocalRuntimeTerms, build_local_endpoint

LOCAL = Path(sys.prefix) / "local"
needs_model = pytest.mark.skipif(
    packages.small_model_path(LOCAL) is None or packages.find_installed(LOCAL, packages.RUNTIME) is None,
    reason="the small model is not installed for the tests: there was no package for this system",
)


def lend(folder: Path) -> Path:
    """Puts the runtime and the small model into a folder, as if they had been installed there."""
    for part in LOCAL.iterdir():
        shutil.copytree(part, folder / part.name, copy_function=_link)
    return folder


def lent(folder: Path, **terms: object) -> LocalEndpoint:
    made = build_local_endpoint(lend(folder), LocalRuntimeTerms(environ=os.environ, **terms))  # pyright: ignore[reportArgumentType] - as given
    assert made
    return made


def is_alive(pid: int) -> bool:
    """Whether anything of it is left: a zombie whose threads still run holds its locks and its port."""
    try:
        gone = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        return not gone or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


def worked(pid: int) -> int:
    """Ticks of processor time that a process has used."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
