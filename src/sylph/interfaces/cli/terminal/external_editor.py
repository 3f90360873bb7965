"""A text in the person's own editor."""

import shlex
import subprocess
import tempfile
from pathlib import Path

from sylph.core.errors import UserError


def edit_in_editor(text: str, editor: str, suffix: str) -> Path:
    """The draft as the editor leaves it. Who takes it over removes it: what was written is not thrown away."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
        file.write(text)
    try:
        code = subprocess.run([*shlex.split(editor), file.name], check=False).returncode
    except OSError as error:
        raise UserError(
            f"The editor {editor!r} cannot be started.", next=["set EDITOR", "sylph config path"]
        ) from error
    if code:
        raise UserError(f"The editor ended with {code}; nothing was changed.", kind="failed")
    return Path(file.name)
