"""Run every check and test of the project.

    ./check             format, lint, types, imports, then all tests
    ./check fast        without the tests
    ./check fix         format the code and fix what ruff can fix
    ./check all         everything: also the long tests in a browser and the long proofs
    ./check app         the browser app: types, lint, unit tests, and the tests in a browser
    ./check ARGUMENTS   only pytest, with these arguments

Every static check is run, also after one has failed; the closing line is pytest's own.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"

# web/build.py says so where there is no Node and no way to the packages of the app.
UNEQUIPPED = 75
STATIC = {
    "format": ("ruff", "format", "--check"),
    "lint": ("ruff", "check", "--quiet"),
    "types": ("basedpyright", "--warnings"),
    "imports": ("lint-imports", "--no-logo"),
    "names and sizes": ("python", "scripts/check_house.py"),
    "app, types": ("python", "web/build.py", "types"),
    "app, lint": ("python", "web/build.py", "lint"),
    "app, tests": ("python", "web/build.py", "test"),
}
APP = {name: command for name, command in STATIC.items() if name.startswith("app")}
# The quick ones first.
PROOFS = ("sandbox", "secrets", "budget", "crash")
FIX = {
    "format": ("ruff", "format"),
    "fix": ("ruff", "check", "--fix"),
}


def main(arguments: list[str]) -> int:
    match arguments:
        case ["-h" | "--help"]:
            print(__doc__)
            return 0
        case ["fast" | "fix" as which]:
            return bool(failures(STATIC if which == "fast" else FIX))
        case ["app"]:
            return bool(failures(APP)) or run_tests("tests/browser")
        case ["all"]:
            failed = failures(STATIC)
            # Named by itself, the folder runs its long tests too.
            tested = run_tests("tests", "tests/browser", failed=failed)
            return tested or bool(failures({f"prove {name}": ("sylph", "prove", name) for name in PROOFS}) or failed)
        case []:
            failed = failures(STATIC)
            return run_tests(failed=failed) or bool(failed)
        case _:
            return call("pytest", *arguments)


def run_tests(*paths: str, failed: Sequence[str] = ()) -> int:
    print(f"== tests{' (failed before them: ' + ', '.join(failed) + ')' if failed else ''}", flush=True)
    # Whoever is done takes from the other: tests differ much in the time they take.
    return call("pytest", "-n", "2", "--dist", "worksteal", "--quiet", *paths)


def failures(steps: dict[str, tuple[str, ...]]) -> list[str]:
    """The names of the steps that failed; all are run."""
    return [name for name, command in steps.items() if not passes(name, command)]


def passes(name: str, command: tuple[str, ...]) -> bool:
    started = time.monotonic()
    print(f"== {name}", flush=True)
    code = call(*command)
    said = {0: "ok", UNEQUIPPED: "NOT LOOKED AT"}.get(code, "FAILED")
    print(f"   {said}, {time.monotonic() - started:.1f} s", flush=True)
    return code in (0, UNEQUIPPED)


def call(program: str, *arguments: str) -> int:
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    # Where the system has no Node, set-up has put one there.
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / ".venv" / "node")}
    return subprocess.run(
        [BIN / program, *arguments], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
