"""What is known of a credential without opening it."""

import re
from typing import Literal

from msgspec import Struct

from sylph.core.errors import UserError

StoredCredentialKind = Literal["login", "borrowed", "key"]
"""In the order in which they are taken."""
KINDS: tuple[StoredCredentialKind, ...] = ("login", "borrowed", "key")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# A shorter secret would be half told by its end.
_MIN_TAIL_LENGTH = 16


class CredentialEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One credential of one service, as it lies on the disk. `secret` is JSON, or base64 where it is sealed."""

    provider: str
    kind: StoredCredentialKind
    v: int = 1
    place: Literal["file", "keyring"] = "file"
    serial: int = 0
    """Grows with every writing, so that a newer one is known from an older."""
    at: int = 0
    """When it was last written, in milliseconds since the epoch."""
    tail: str = ""
    """The last characters, for people to know it by."""
    account: str = ""
    """Whose login it is, or which tool it is borrowed from."""
    headers: dict[str, str] = {}
    """What the service wants with every request, because of this login."""
    base_url: str = ""
    """Where the service is for this login, if not where it usually is."""
    expires: float = 0.0
    """When the access ends, in seconds since the epoch; 0 where it does not, or nobody knows."""
    renewing: float = 0.0
    """A renewal was begun then, and its end was not written down."""
    ended: str = ""
    """Why the login cannot be renewed any more."""
    sealed: bool = False
    secret: str = ""

    def __repr__(self) -> str:
        """Names it, and keeps its secret to itself."""
        return f"CredentialEntry({self.provider!r}, {self.kind!r}, serial={self.serial})"


def check_provider_name(provider: str) -> str:
    """The name, if it can be one of a file. Raises UserError."""
    if not _NAME.fullmatch(provider):
        raise UserError(f"{provider!r} is not the name of a provider.", next=["sylph connect status"])
    return provider


def secret_tail(secret: str) -> str:
    return f"…{secret[-4:]}" if len(secret) >= _MIN_TAIL_LENGTH else "…"
