"""The runtime's own processes: one serves a model file on loopback, one ends it when nobody holds the lease any more.

It is started with `python -I -S` and knows the standard library and the runtime's folder, nothing else. What it is to
do comes on stdin as one line of JSON, so that the key stands in no list of processes. Its address is written to a file
of the owner's, once it is seen that the port is closed to those who have no key.
"""

import fcntl
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from http.client import HTTPConnection
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
# As a shell tells which signal ended a program.
SIGNALLED = 128


def main() -> int:
    """Starts both, and ends when the model is ready, or with a code when it cannot be."""
    told = json.loads(sys.stdin.readline())
    heard, said = os.pipe()
    if os.fork() == 0:
        os.close(heard)
        _detach_process()
        watch_lease(told, said)
    os.close(said)
    return int(os.read(heard, 16) or b"1")


def _detach_process() -> None:
    """Belongs to nobody's terminal, and holds nobody's pipe open."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)


def watch_lease(told: dict[str, Any], said: int) -> NoReturn:
    """Starts the one that serves, and ends it when the lease can be had alone: then nobody holds it any more.

    That one cannot do it by itself: while it loads a model, which may take minutes, no other thread of it moves.
    """

    def ended(*_: object) -> NoReturn:
        """It has ended by itself: that is told to whoever still waits for it."""
        code = os.waitstatus_to_exitcode(os.wait()[1])
        with suppress(BrokenPipeError):
            os.write(said, str(code if code > 0 else SIGNALLED - code).encode())
        os._exit(0)

    signal.signal(signal.SIGCHLD, ended)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        serve_model(told, said)
    fcntl.flock(os.open(told["lease"], OPEN_FLAGS, 0o600), fcntl.LOCK_EX)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    Path(told["address"]).unlink(missing_ok=True)
    os._exit(0)


def serve_model(told: dict[str, Any], said: int) -> NoReturn:
    # Held as long as this process lives: whoever finds it free knows that the address is worth nothing any more.
    fcntl.flock(os.open(told["alive"], OPEN_FLAGS, 0o600), fcntl.LOCK_EX)
    # In case that the other one is gone.
    threading.Thread(target=_exit_without_lease, args=(told["lease"],), daemon=True).start()
    sys.path.insert(0, told["library"])
    server = _start_server(told)
    host, _, port = server.listening_address.removeprefix("http://").rpartition(":")
    if (found := [_probe_status(host, int(port), key) for key in ("", told["key"])]) != [401, 200]:
        sys.exit(f"0 E the port is not kept closed: {found}")
    _write_file(told["address"], {"url": server.listening_address, "key": told["key"], "pid": os.getpid()})
    with suppress(BrokenPipeError):
        os.write(said, b"0")
    while True:
        signal.pause()


def _exit_without_lease(lease: str) -> None:
    fcntl.flock(os.open(lease, OPEN_FLAGS, 0o600), fcntl.LOCK_EX)
    os._exit(0)


def _start_server(told: dict[str, Any]) -> Any:
    # Only there in the runtime's own folder, and without types.
    runtime: Any = import_module("xllamacpp")
    params = runtime.CommonParams()
    params.model.path = told["model"]
    params.model_alias = {told["name"]}
    params.api_keys = [told["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cors_origins = "null"
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    params.offline = True
    params.n_ctx, params.n_parallel = told["window"], 1
    params.n_predict = told["most"] or -1
    # Prompts of other conversations that are kept in memory; by itself it would take 8 GB.
    params.cache_ram_mib = 256
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = told["threads"]
    params.verbosity = 2
    for name, value in told["sampling"].items():
        setattr(params.sampling, name, value)
    return runtime.Server(params)


def _probe_status(host: str, port: int, key: str) -> int:
    connection = HTTPConnection(host, port, timeout=30)
    connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    status = connection.getresponse().status
    connection.close()
    return status


def _write_file(path: str, value: dict[str, Any]) -> None:
    """All of it or nothing, for the owner's eyes only."""
    fresh = f"{path}.{os.getpid()}"
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file)
    Path(fresh).replace(path)


if __name__ == "__main__":
    sys.exit(main())
