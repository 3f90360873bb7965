"""A keyring for programs under test: the file that TEST_KEYRING names, locked by another beside it."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class FileKeyring(KeyringBackend):
    name = "a keyring for tests"  # pyright: ignore[reportAssignmentType] - the base class computes it
    priority = 5  # pyright: ignore[reportAssignmentType]

    def get_password(self, service: str, username: str) -> str | None:
        return self._held().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write({**self._held(), f"{service} {username}": password})

    def delete_password(self, service: str, username: str) -> None:
        held = self._held()
        if f"{service} {username}" not in held:
            raise PasswordDeleteError
        self._write({name: secret for name, secret in held.items() if name != f"{service} {username}"})

    def _held(self) -> dict[str, str]:
        path = Path(os.environ["TEST_KEYRING"])
        if path.with_suffix(".locked").exists():
            raise KeyringLocked("the keyring is locked")
        return json.loads(path.read_text()) if path.exists() else {}

    def _write(self, held: dict[str, str]) -> None:
        Path(os.environ["TEST_KEYRING"]).write_text(json.dumps(held))
