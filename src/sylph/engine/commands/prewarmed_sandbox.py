"""A sandbox set up ahead: it waits, as a shell without a script, for the next command that fits it exactly.

Setting one up takes several times as long as most commands. So when a command has ended, the next one's sandbox is
made while the model thinks. It is used only for an order with the same view of the system, word for word, and only if
everything that was mounted is still in place; any other order gets a sandbox of its own, and this one goes.

Needs the standard library alone.
"""

import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
from typing import Any

from sylph.engine.commands.processes import RUN_MARK, exit_status
from sylph.engine.commands.sandbox_start import CHUNK, SHELL, build_sandbox_argv

READY_BYTE = b"."
# Says that it is there, then waits for its script. That is one block: cut off, it is no command at all.
WAIT_SCRIPT = "; printf .; . /dev/fd/0"
LONGEST_SCRIPT = 60_000  # bytes of a script: so much fits into a pipe at once
READY_SECONDS = 0.1  # seconds for one that is not quite ready yet
IDLE_SECONDS = 30.0  # seconds that one is kept unused
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Shells that are bash in disguise do not let these be set.
FIXED_VARIABLES = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID", "IFS", "ENV"})


class PrewarmedSandbox:
    def __init__(self, order: dict[str, Any], process: subprocess.Popen[bytes], status: int, since: float) -> None:
        self.process, self.status, self.since = process, status, since
        self.inside = 0
        self._kind = sandbox_signature(order)
        self._mounts = b""
        self._ready = False

    @property
    def expires_at(self) -> float:
        return self.since + IDLE_SECONDS

    @property
    def ready_fd(self) -> int:
        """Where it says that it is ready."""
        assert self.process.stdout
        return self.process.stdout.fileno()

    def read_ready(self) -> bool:
        """It said something: it is ready, or it failed."""
        if self._ready:
            return False
        with contextlib.suppress(OSError):
            if os.read(self.ready_fd, 1) == READY_BYTE:
                told = re.search(rb'"child-pid": (\d+)', os.read(self.status, CHUNK))
                self.inside = int(told[1]) if told else 0
                self._mounts = read_mounts(self.inside)
                self._ready = bool(self._mounts)
        return self._ready

    def fits_request(self, order: dict[str, Any]) -> bool:
        """Whether the order means this very sandbox, and it is still as it was set up."""
        if (
            not is_prewarmable(order)
            or sandbox_signature(order) != self._kind
            or exit_status(self.process.pid) is not None
        ):
            return False
        if not self._ready and select.select([self.ready_fd], [], [], READY_SECONDS)[0]:
            self.read_ready()
        return self._ready and read_mounts(self.inside) == self._mounts

    def hand_over(self, order: dict[str, Any]) -> bool:
        """Hands the command over; False if it is not there to take it, and then it has not begun it."""
        assert self.process.stdin
        try:
            os.write(self.process.stdin.fileno(), build_script(order))
            self.process.stdin.close()
        except OSError:
            return False
        self.process.stdin = None
        return True

    def discard(self) -> None:
        """Ends it. Whoever reaps the runner's children reaps it too."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        os.close(self.status)


def prewarm_sandbox(order: dict[str, Any], since: float) -> PrewarmedSandbox | None:
    """A sandbox like the one this order had."""
    box = order["box"]
    argv, held, status = build_sandbox_argv(box, order["cwd"])
    try:
        process = subprocess.Popen(
            [*argv, "--", SHELL, "-c", box["limits"] + WAIT_SCRIPT],
            cwd="/",
            env={RUN_MARK: "spare"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
            pass_fds=held,
        )
    except OSError:
        os.close(status)
        return None
    finally:
        for fd in held:
            os.close(fd)
    return PrewarmedSandbox(order, process, status, since)


def is_prewarmable(order: dict[str, Any]) -> bool:
    """Whether an order can be told to a waiting shell: no input of its own, nothing that outlives a moment."""
    if not order.get("box") or order.get("job") or order.get("interactive") or order.get("stdin") is not None:
        return False
    return (
        all(VARIABLE_NAME.fullmatch(name) and name not in FIXED_VARIABLES for name in order["env"])
        and len(build_script(order)) <= LONGEST_SCRIPT
    )


def sandbox_signature(order: dict[str, Any]) -> tuple[object, ...]:
    box = order["box"]
    return box["head"], box["holds"], box["limits"], order["cwd"]


def build_script(order: dict[str, Any]) -> bytes:
    env = {**order["env"], RUN_MARK: order["key"]}
    # Where it is, the shell knows better.
    told = " ".join(name if name == "PWD" else f"{name}={shlex.quote(value)}" for name, value in env.items())
    return f"{{ export {told}; exec {shlex.join(order['argv'])} </dev/null; }}\n".encode("utf-8", "surrogateescape")


def read_mounts(pid: int) -> bytes:
    """What a process has mounted, as the kernel tells it: a place that was deleted or replaced shows in there."""
    try:
        with open(f"/proc/{pid}/mountinfo", "rb") as file:
            return file.read()
    except OSError:
        return b""
