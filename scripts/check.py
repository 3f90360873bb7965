"""Run every check and test of the project.

    ./check             format, lint, types, imports, then all tests
    ./check fast        without the tests
    ./check fix         format the code and fix what ruff can fix
    ./check app         the browser app: types, lint, unit tests, and the tests in a browser
    ./check ARGUMENTS   only pytest, with these arguments

Every static check is run, also after one has failed; the closing line is pytest's own.
"""

import os
import subprocess
import sys
import time
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
    "app, types": ("python", "web/build.py", "types"),
    "app, lint": ("python", "web/build.py", "lint"),
    "app, tests": ("python", "web/build.py", "test"),
}
APP = {name: command for name, command in STATIC.items() if name.startswith("app")}
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
            return bool(failures(APP)) or call("pytest", "-n", "2", "--dist", "worksteal", "--quiet", "tests/browser")
        case []:
            failed = failures(STATIC)
            if not any((ROOT / "tests").rglob("test_*.py")):
                print("== tests: there are none yet")
                return bool(failed)
            print(f"== tests{' (failed before them: ' + ', '.join(failed) + ')' if failed else ''}", flush=True)
            # Whoever is done takes from the other: tests differ much in the time they take.
            return call("pytest", "-n", "2", "--dist", "worksteal", "--quiet") or bool(failed)
        case _:
            return call("pytest", *arguments)


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
