"""Processes as the kernel shows them: who is whose child, when it began, and whether it still lives."""

import contextlib
import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
RUN_MARK = "SYLPH_RUN"
KILL_PASSES = 1000
TRIES, PAUSE = 20, 0.001


def exit_status(pid: int) -> int | None:
    """How a child ended, as minus the signal or its exit code; None while it runs. It stays a zombie."""
    seen = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if seen is None:
        return None
    return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status


def own_child_pids() -> list[int]:
    return child_pids(os.getpid())


def child_pids(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def descendant_pids(parent: int, key: str) -> list[int]:
    """The living descendants of the command `key`, also those that left its process group."""
    found: list[int] = []
    waiting = child_pids(parent) + [pid for pid in own_child_pids() if has_run_mark(pid, key)]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += child_pids(pid)
    return found


def has_run_mark(pid: int, key: str) -> bool:
    """Whether a process was started by the command `key`: it carries the mark in its environment."""
    for _ in range(TRIES):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            return False
        if variables != [b""] or is_zombie(pid):
            return f"{RUN_MARK}={key}".encode() in variables
        # It is just becoming another program: for a moment its environment is empty.
        time.sleep(PAUSE)
    return False


def kill_marked(key: str) -> None:
    """Ends all that the command `key` has started, whoever's child it is by now."""
    killed, nobody = set[int](), 0
    # Whoever is killed in the middle of a fork has one more child before it dies, which can take a while. And that can
    # be during a look: only the next one sees the child.
    for _ in range(KILL_PASSES):
        dead = all(is_zombie(pid) for pid in killed)
        found = [pid for pid in list_pids() if has_run_mark(pid, key)]
        nobody = nobody + 1 if dead and not found else 0
        if nobody == 2:
            return
        for pid in found:
            killed.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE)


def list_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time of a process and of those of its children that have ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return sum(map(int, file.read().rpartition(b")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def freeze_tree(parent: int, key: str) -> list[int]:
    """Stops the command `key` and all its descendants, until none of them can make another; returns them."""
    seen = dict[int, None]()
    while new := [pid for pid in (parent, *descendant_pids(parent, key)) if pid not in seen]:
        for pid in new:
            seen[pid] = None
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
    return list(seen)


def exceeded_limit(parent: int, key: str, limits: dict[str, float]) -> str:
    """Which limit the command `key` and its descendants are over together, if any."""
    kin = [parent, *descendant_pids(parent, key)]
    used = {"processes": len(kin), "memory": 0.0, "cpu": 0.0}
    # There may be very many of them, and then it is urgent.
    for pid in kin if len(kin) <= limits.get("processes", len(kin)) else ():
        used["memory"] += resident_bytes(pid)
        used["cpu"] += cpu_seconds(pid)
    return next((what for what, most in limits.items() if used[what] > most), "")


def start_time(pid: int) -> str:
    """When a process began, as the kernel counts: with the pid it names the process for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return True


def boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def adopt_orphans() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
