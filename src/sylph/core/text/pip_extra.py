"""How a library that Sylph works without is brought to this very installation."""

import shlex
import sys
from pathlib import Path


def install_command(requirement: str) -> str:
    """The command that installs it where this Python finds it; a clone's own environment has uv, and no pip."""
    bin = Path(sys.executable).parent
    pip = [str(bin / "uv"), "pip"] if (bin / "uv").exists() else [sys.executable, "-m", "pip"]
    where = ["--python", sys.executable] if (bin / "uv").exists() else []
    return shlex.join([*pip, "install", *where, requirement])
