"""The environment in which set-up runs pip and uv: the user's own, with what pip was told passed on to uv."""

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

# uv reads neither pip's files nor its variables.
PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
# They would send packages elsewhere than into .venv.
UNWANTED = {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV"}


@functools.cache
def environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    for name, value in pip_settings().items():
        env.setdefault(PIP_TO_UV[name], value.replace(" ", ",") if name == "find-links" else value)
    if "UV_INDEX" in env:
        # As in pip, all indexes are equal: the hashes in the lock decide what is accepted.
        env.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    cache = env.get("UV_CACHE_DIR") or Path(env.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "uv"
    if not writable(Path(cache)):
        env["UV_NO_CACHE"] = "1"
    return env


def pip_settings() -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    settings: dict[str, str] = {}
    # Variables, listed as ":env:", win over files.
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in {"global", "install", ":env:"} and name in PIP_TO_UV:
            settings[name] = " ".join(ast.literal_eval(value).split())
    return settings


def writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
