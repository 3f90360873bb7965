"""Processes that serve the models of this machine: one for each model, shared by every Sylph that asks it."""

import asyncio
import hashlib
import os
import re
import secrets
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import ProviderError, UserError
from sylph.providers.local import gguf, packages, runtime_server
from sylph.providers.local.file_lease import FileLease, hold_exclusive
from sylph.providers.local.models import NAME, SMALL, LocalEndpoint, LocalModelInfo

RUN_FOLDER = "run"
# A large model is read from the disk first.
START_SECONDS = 600.0
# The small model wanders off at the first surprise, and may say the same for ever.
SAMPLING: Mapping[str, Mapping[str, float]] = {SMALL: {"temp": 0.0, "penalty_repeat": 1.1}}
# A code above this tells which signal ended it.
SIGNALLED = 128
WHY_KILLED: Mapping[int, tuple[str, str]] = {
    signal.SIGKILL: (
        "there may not be enough memory for it",
        "use a smaller model, or a smaller window: `local.models`",
    ),
    signal.SIGILL: ("this processor may be too old for the runtime", "run a model server of your own"),
}
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
COMPLAINT = re.compile(r"^[\d.]+ E \S+\s*(?:\S+: )?(.*)$")


class RuntimeAddress(Struct, frozen=True):
    """Where a runtime listens, what opens it, and which process it is."""

    url: str
    key: str
    pid: int


class RuntimeFiles(Struct, frozen=True):
    """The files of one runtime. Another window or another file under the same name is another runtime."""

    stem: Path

    @property
    def lease(self) -> Path:
        """Held by everybody who uses it. When nobody does, it ends."""
        return self.stem.with_suffix(".lease")

    @property
    def start(self) -> Path:
        """Held by the one who looks whether it runs, and starts it."""
        return self.stem.with_suffix(".start")

    @property
    def alive(self) -> Path:
        """Held by the runtime itself."""
        return self.stem.with_suffix(".alive")

    @property
    def address(self) -> Path:
        return self.stem.with_suffix(".json")

    @property
    def log(self) -> Path:
        return self.stem.with_suffix(".log")


class RuntimeOptions(Struct, frozen=True, kw_only=True):
    """What a runtime is told when it is started."""

    library: str
    model: str
    name: str
    window: int
    most: int
    threads: int
    sampling: Mapping[str, float]
    key: str = ""
    lease: str = ""
    alive: str = ""
    address: str = ""


async def borrow_runtime(endpoint: LocalEndpoint, model: LocalModelInfo) -> tuple[RuntimeAddress, FileLease]:
    """A running runtime for the model, started if need be. It runs at least until the lease is dropped."""
    order = _build_options(endpoint, model)
    try:
        files = _runtime_files(endpoint.folder / RUN_FOLDER, order)
        lease = await FileLease.acquire_shared(files.lease)
        try:
            async with hold_exclusive(files.start):
                return _find_running(files) or await _start_runtime(order, files, endpoint.environ), lease
        except BaseException:
            lease.release()
            raise
    except OSError as error:
        said = f"The runtime of {NAME}/{model.name} cannot be started: {error}."
        raise ProviderError("bad_request", said, next=["sylph doctor"]) from error


def thread_count(wanted: int, cores: int | None = None) -> int:
    """All cores but one: with all of them, a single busy neighbour makes it a hundred times slower."""
    return wanted or max((cores or _usable_cores()) - 1, 1)


def _usable_cores() -> int:
    """Those that we may use, where the system tells."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _build_options(endpoint: LocalEndpoint, model: LocalModelInfo) -> RuntimeOptions:
    library = packages.find_installed(endpoint.folder, packages.RUNTIME)
    if library is None:
        again = "sylph models install small" if model.name == SMALL else f"sylph models add {model.path}"
        raise ProviderError(
            "not_found", f"The runtime for {NAME}/{model.name} is not installed.", next=[again, "sylph models"]
        )
    if not Path(model.path).is_file():
        raise ProviderError(
            "not_found",
            f"The file of {NAME}/{model.name} is gone: {model.path}",
            next=[f"sylph models remove {model.name}", "or put it back"],
        )
    return RuntimeOptions(
        library=str(library),
        model=model.path,
        name=model.name,
        window=model.window or 0,
        most=model.output or 0,
        threads=thread_count(endpoint.threads),
        sampling=SAMPLING.get(model.name, {}),
    )


def _runtime_files(folder: Path, order: RuntimeOptions) -> RuntimeFiles:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.blake2b(msgspec.json.encode(order), digest_size=6).hexdigest()
    return RuntimeFiles(folder / f"{order.name}-{digest}")


def _find_running(files: RuntimeFiles) -> RuntimeAddress | None:
    """The runtime that is there already. Its address counts only while it lives: the port may be another's by now."""
    if free := FileLease.try_exclusive(files.alive):
        free.release()
        return None
    try:
        return msgspec.json.decode(files.address.read_bytes(), type=RuntimeAddress)
    except (OSError, msgspec.DecodeError):
        return None


async def _start_runtime(order: RuntimeOptions, files: RuntimeFiles, environ: Mapping[str, str]) -> RuntimeAddress:
    order = msgspec.structs.replace(
        order,
        key=secrets.token_urlsafe(32),
        lease=str(files.lease),
        alive=str(files.alive),
        address=str(files.address),
    )
    files.address.unlink(missing_ok=True)
    with os.fdopen(os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", runtime_server.__file__, stdin=PIPE, stdout=DEVNULL, stderr=log, cwd="/",
            env={name: environ[name] for name in KEPT_VARIABLES if name in environ},
        )  # fmt: skip
    try:
        async with asyncio.timeout(START_SECONDS):
            await process.communicate(msgspec.json.encode(order) + b"\n")
    except TimeoutError:
        raise ProviderError("server_error", f"{NAME}/{order.name} was not ready in {START_SECONDS:.0f} s.") from None
    finally:
        # What it has started ends by itself: nobody holds the lease.
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise _start_error(order, files, process.returncode)
    return msgspec.json.decode(files.address.read_bytes(), type=RuntimeAddress)


def _start_error(order: RuntimeOptions, files: RuntimeFiles, code: int) -> ProviderError:
    """Why it did not start: what is wrong with the file, else in its own words."""
    again = [f"sylph models remove {order.name}"]
    try:
        gguf.read_info(Path(order.model))
    except UserError as error:
        return ProviderError("bad_request", str(error), next=[*error.trouble.next, *again])
    if code > SIGNALLED:
        number = code - SIGNALLED
        why, what = WHY_KILLED.get(number, ("the file may be damaged", "download it again"))
        said = f"{NAME}/{order.name} was ended by signal {number} while it was loaded: {why}."
        return ProviderError("bad_request", said, next=[what, *again])
    said = files.log.read_text(encoding="utf-8", errors="replace").splitlines()
    complaints = [found[1] for row in said if (found := COMPLAINT.match(row))]
    why = complaints[0] if complaints else said[-1] if said else f"it ended with {code}"
    return ProviderError(
        "bad_request", f"{NAME}/{order.name} cannot be loaded: {why}", next=[f"see {files.log}", *again]
    )
