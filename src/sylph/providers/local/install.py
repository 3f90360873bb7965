"""Bringing a package into a folder of Sylph's own, with the installer that is there: all of it or nothing."""

import asyncio
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sylph.core.errors import UserError
from sylph.providers.local import installer_guard, packages
from sylph.providers.local.file_lease import FileLease
from sylph.providers.local.packages import LocalPackage

Progress = Callable[[LocalPackage, float], None]
"""Told again and again which part is under way, and how much of it is there: 0 to 1."""
LOOK_SECONDS = 0.2
MEGABYTE = 1_000_000
# Beside what stays there, it holds the download and what comes of it.
SPACE_FACTOR = 2.5
# Installers that ask nobody, wait for no index for long, and trust whom the system trusts.
INSTALLER_ENV = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_RETRIES": "2",
    "UV_HTTP_RETRIES": "1",
    "UV_SYSTEM_CERTS": "true",
}
# They would send packages elsewhere, or have our own code found by the installer.
UNWANTED_VARIABLES = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "PYTHONPATH", "PYTHONHOME")
NO_NETWORK = re.compile("failed to fetch|connection|dns error|timed out|temporary failure|newconnectionerror", re.I)
NO_WHEEL = re.compile("no matching distribution|no solution found|not a supported wheel|no compatible|no wheels", re.I)
WRONG_HASH = re.compile("do not match the hashes|hash mismatch|hashes are required", re.I)


async def install_packages(
    folder: Path, wanted: Sequence[LocalPackage], environ: Mapping[str, str], progress: Progress
) -> list[LocalPackage]:
    """Installs what is not there yet in the version that is pinned; returns what was installed."""
    _make_folder(folder)
    lease = FileLease.try_exclusive(folder / "install.lock")
    if lease is None:
        raise UserError("Another install is under way.", kind="busy", next=["wait for it: sylph models"])
    try:
        _remove_leftovers(folder)
        missing = [part for part in wanted if not packages.is_current(folder, part)]
        _check_space(folder, missing)
        for part in missing:
            await _install_package(folder, part, environ, progress)
    finally:
        lease.release()
    return missing


def needed_megabytes(folder: Path, wanted: Sequence[LocalPackage]) -> tuple[int, int]:
    """Megabytes that are still to be downloaded, and that they take up on the disk."""
    missing = [part for part in wanted if not packages.is_current(folder, part)]
    return sum(part.download for part in missing), sum(part.disk for part in missing)


def _make_folder(folder: Path) -> None:
    try:
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be made: {error.strerror}.", kind="failed", next=["set SYLPH_HOME"]
        ) from error


def _remove_leftovers(folder: Path) -> None:
    """What an install that was killed has left behind."""
    for path in folder.glob(f"{packages.STAGING}*"):
        shutil.rmtree(path, ignore_errors=True)


def _check_space(folder: Path, missing: Sequence[LocalPackage]) -> None:
    wanted = max((part.disk for part in missing), default=0) * (SPACE_FACTOR - 1) + sum(part.disk for part in missing)
    free = shutil.disk_usage(folder).free / MEGABYTE
    if missing and free < wanted:
        raise UserError(
            f"There is not enough room in {folder}: {wanted:.0f} MB are needed, {free:.0f} MB are free.",
            kind="disk_full",
            next=["make room, or set SYLPH_HOME to another disk"],
        )


async def _install_package(folder: Path, part: LocalPackage, environ: Mapping[str, str], progress: Progress) -> None:
    """Everything happens in a folder beside; its name changes when it is whole, which is one step for the disk."""
    staging = Path(tempfile.mkdtemp(prefix=packages.STAGING, dir=folder))
    try:
        (staging / "tmp").mkdir()
        target = staging / part.name
        program = await _find_installer(staging, environ)
        kept = {name: value for name, value in environ.items() if name not in UNWANTED_VARIABLES}
        env = {**INSTALLER_ENV, **kept, "TMPDIR": str(staging / "tmp")}
        share = 0.0

        def look() -> None:
            nonlocal share
            share = max(share, _measure_progress(staging, part))
            progress(part, share)

        said = await _run_installer(program, staging, part, env, look)
        if not any(target.glob(part.holds)):
            raise UserError(
                f"{part.package} does not hold what it should.", kind="failed", details={"said": said[-500:]}
            )
        await asyncio.to_thread(_sync_files, target)
        progress(part, 1.0)
        final = packages.install_path(folder, part)
        shutil.rmtree(final, ignore_errors=True)
        target.rename(final)
        for other in set(packages.list_installed(folder, part)) - {final}:
            shutil.rmtree(other, ignore_errors=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _sync_files(folder: Path) -> None:
    """Has all files on the disk, so that a loss of power leaves no empty ones under a name that promises more."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


async def _find_installer(staging: Path, environ: Mapping[str, str]) -> list[str]:
    """pip of this Python or of the one beneath it, which knows the user's settings; else uv; else pip as Python has it.

    None of them changes the environment it comes from: what is installed goes to a folder that is named.
    """
    beneath = getattr(sys, "_base_executable", "") or sys.executable
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install"]
    if beneath != sys.executable and await _ends_well(beneath, "-m", "pip", "--version"):
        return [beneath, "-m", "pip", "install"]
    beside = Path(sys.executable).with_name("uv")
    if uv := str(beside) if beside.exists() else shutil.which("uv", path=environ.get("PATH")):
        return [uv, "pip", "install", "--python", sys.executable]
    if await _ends_well(sys.executable, "-m", "venv", str(staging / "pip")):
        return [str(staging / "pip" / "bin" / "python"), "-m", "pip", "install"]
    raise UserError(
        "There is no installer: neither pip nor uv was found.",
        kind="no_installer",
        next=["install one of them, for example: apt install python3-pip python3-venv"],
    )


async def _run_installer(
    program: Sequence[str], staging: Path, part: LocalPackage, env: Mapping[str, str], look: Callable[[], None]
) -> str:
    """Runs the installer under somebody who tidies up when we are killed; returns what it said."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", installer_guard.__file__, str(staging),
        *program, "--target", str(staging / part.name), "--no-deps", "--only-binary", ":all:", "--require-hashes",
        "-r", str(part.lock_file), stdin=PIPE, stdout=PIPE, stderr=STDOUT, env=env, start_new_session=True,
    )  # fmt: skip
    assert process.stdin and process.stdout
    watching = asyncio.create_task(_watch_progress(look))
    try:
        said = (await process.stdout.read()).decode(errors="replace")
        await process.wait()
    finally:
        watching.cancel()
        process.stdin.close()
        await process.wait()
    if process.returncode:
        raise _install_error(part, said)
    return said


async def _watch_progress(look: Callable[[], None]) -> None:
    while True:
        look()
        await asyncio.sleep(LOOK_SECONDS)


async def _ends_well(*command: str) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    except OSError:
        return False
    return await process.wait() == 0


def _measure_progress(staging: Path, part: LocalPackage) -> float:
    """How much is there, seen from outside: first comes the download, then what is in it."""
    there = 0
    for folder, _, files in os.walk(staging):
        for name in files:
            with suppress(OSError):
                there += os.stat(os.path.join(folder, name)).st_size  # noqa: PTH116, PTH118 - it may vanish any moment
    return min(there / MEGABYTE / (part.download + part.disk), 0.99)


def _install_error(part: LocalPackage, said: str) -> UserError:
    rows = [row.strip() for row in said.splitlines() if row.strip()]
    told = [row for row in rows if row.lower().startswith(("error", "╰─▶", "├─▶"))] or rows
    last = told[-1][:300] if told else "it said nothing"
    if WRONG_HASH.search(said):
        return UserError(
            f"What the package index sent as {part.package} is not what is pinned.",
            kind="wrong_hash",
            details={"said": last},
            next=["nothing was installed; try again, or use another index"],
        )
    if NO_NETWORK.search(said):
        return UserError(
            f"{part.package} could not be fetched: the package index cannot be reached.",
            kind="no_network",
            details={"said": last},
            next=["check the network, and HTTPS_PROXY or PIP_INDEX_URL if you use them", "then try it again"],
        )
    if NO_WHEEL.search(said):
        return UserError(
            f"There is no {part.package} {part.version} for this system in the package index.",
            kind="no_package",
            details={"said": last},
            next=["a model server of your own will do: Ollama, llama.cpp and LM Studio are found by themselves"],
        )
    return UserError(f"{part.package} could not be installed: {last}", kind="failed", next=["try it again"])
