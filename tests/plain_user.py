"""Tests for which the modes of files must count: where root runs them, a process without root's rights does."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

PR_CAPBSET_DROP = 24
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: files are opened whatever their mode says.
IGNORES_MODES = (1, 2)


def ignores_modes() -> bool:
    """Whether this process may open files against their modes."""
    status = Path("/proc/self/status")
    if os.geteuid() != 0 or not status.exists():
        return False
    line = next(line for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) & (1 << IGNORES_MODES[0]))


def rerun_as_plain_user(node: str) -> None:
    """Runs one test again in a process for which modes count, and fails where it fails there."""
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-p", "no:xdist", node]
    done = subprocess.run(command, preexec_fn=_drop_rights, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def _drop_rights() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in IGNORES_MODES:
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "a right of root could not be dropped")
