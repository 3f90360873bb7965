"""Sealing with a passphrase: scrypt makes a key of it, which opens the key that the secrets are sealed with.

So changing the passphrase rewrites one small file, and a crash in between leaves either the old one or the new.
"""

import binascii
import hashlib
import os
from base64 import b64decode, b64encode
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Struct

from sylph.core import extra
from sylph.core.errors import UserError

# 64 MiB and about 0.2 s for each try.
COST, BLOCK, LANES = 1 << 16, 8, 1
SIZE = 32
NEEDS = "pynacl>=1.6"
SHORTEST = 8


class Vault(Struct, frozen=True, kw_only=True):
    """The key of the secrets, wrapped; with what is needed to unwrap it but the passphrase."""

    v: int = 1
    salt: str
    cost: int
    block: int
    lanes: int
    box: str


def good(passphrase: str) -> str:
    """A passphrase that is long enough to be set. Raises UserError."""
    if len(passphrase) < SHORTEST:
        raise UserError(
            f"A passphrase has {SHORTEST} characters or more; nothing was changed.", next=["several words are good"]
        )
    return passphrase


def there() -> bool:
    """Whether the library is installed."""
    try:
        import_module("nacl.secret")
    except ImportError:
        return False
    return True


def need() -> None:
    """Raises UserError where the library is missing."""
    if not there():
        raise UserError(
            "Credentials are sealed with a passphrase, and the library for that is not installed.",
            kind="config",
            next=[extra.command(NEEDS)],
        )


def invent() -> bytes:
    """A key for secrets."""
    return os.urandom(SIZE)


def wrap(key: bytes, passphrase: str) -> Vault:
    salt = os.urandom(16)
    box = _box(_stretch(passphrase, salt, COST, BLOCK, LANES)).encrypt(key, b"vault")
    return Vault(salt=_text(salt), cost=COST, block=BLOCK, lanes=LANES, box=_text(bytes(box)))


def unwrap(vault: Vault, passphrase: str) -> bytes | None:
    """The key; None where the passphrase is wrong."""
    wrapping = _stretch(passphrase, b64decode(vault.salt), vault.cost, vault.block, vault.lanes)
    return _opened(wrapping, vault.box, b"vault")


def seal(key: bytes, secret: bytes, name: str) -> str:
    """The secret, sealed for one place: put elsewhere it does not open."""
    return _text(bytes(_box(key).encrypt(secret, name.encode())))


def unseal(key: bytes, sealed: str, name: str) -> bytes | None:
    """What was sealed; None where it was damaged, moved or sealed with another key."""
    return _opened(key, sealed, name.encode())


def parse(data: bytes) -> Vault:
    """Raises ValueError."""
    vault = msgspec.json.decode(data, type=Vault)
    # Numbers of somebody else's choice could make this take forever.
    if vault.v != 1 or vault.cost > 1 << 20 or vault.block > 32 or vault.lanes > 16:
        raise ValueError("a newer Sylph has written it")
    return vault


def _opened(key: bytes, box: str, about: bytes) -> bytes | None:
    need()
    from nacl.exceptions import CryptoError

    try:
        return _box(key).decrypt(b64decode(box, validate=True), about)
    except (CryptoError, binascii.Error):
        return None


def _box(key: bytes) -> Any:
    """XChaCha20-Poly1305 of libsodium, imported only where there is a passphrase."""
    need()
    from nacl.secret import Aead

    return Aead(key)


def _stretch(passphrase: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    memory = 128 * cost * block * lanes + (1 << 20)
    return hashlib.scrypt(passphrase.encode(), salt=salt, n=cost, r=block, p=lanes, maxmem=memory, dklen=SIZE)


def _text(data: bytes) -> str:
    return b64encode(data).decode()
