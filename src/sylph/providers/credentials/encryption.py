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

from sylph.core.errors import UserError
from sylph.core.text import pip_extra

# 64 MiB and about 0.2 s for each try.
COST, BLOCK, LANES = 1 << 16, 8, 1
SIZE = 32
REQUIREMENT = "pynacl>=1.6"
MIN_PASSPHRASE_LENGTH = 8


class WrappedKey(Struct, frozen=True, kw_only=True):
    """The key of the secrets, wrapped; with what is needed to unwrap it but the passphrase."""

    v: int = 1
    salt: str
    cost: int
    block: int
    lanes: int
    box: str


def check_passphrase(passphrase: str) -> str:
    """A passphrase that is long enough to be set. Raises UserError."""
    if len(passphrase) < MIN_PASSPHRASE_LENGTH:
        raise UserError(
            f"A passphrase has {MIN_PASSPHRASE_LENGTH} characters or more; nothing was changed.",
            next=["several words are good"],
        )
    return passphrase


def is_available() -> bool:
    """Whether the library is installed."""
    try:
        import_module("nacl.secret")
    except ImportError:
        return False
    return True


def require_library() -> None:
    """Raises UserError where the library is missing."""
    if not is_available():
        raise UserError(
            "Credentials are sealed with a passphrase, and the library for that is not installed.",
            kind="config",
            next=[pip_extra.install_command(REQUIREMENT)],
        )


def generate_key() -> bytes:
    """A key for secrets."""
    return os.urandom(SIZE)


def wrap_key(key: bytes, passphrase: str) -> WrappedKey:
    salt = os.urandom(16)
    box = _make_cipher(_derive_key(passphrase, salt, COST, BLOCK, LANES)).encrypt(key, b"vault")
    return WrappedKey(salt=_encode_base64(salt), cost=COST, block=BLOCK, lanes=LANES, box=_encode_base64(bytes(box)))


def unwrap_key(vault: WrappedKey, passphrase: str) -> bytes | None:
    """The key; None where the passphrase is wrong."""
    wrapping = _derive_key(passphrase, b64decode(vault.salt), vault.cost, vault.block, vault.lanes)
    return _decrypt_box(wrapping, vault.box, b"vault")


def seal_secret(key: bytes, secret: bytes, name: str) -> str:
    """The secret, sealed for one place: put elsewhere it does not open."""
    return _encode_base64(bytes(_make_cipher(key).encrypt(secret, name.encode())))


def unseal_secret(key: bytes, sealed: str, name: str) -> bytes | None:
    """What was sealed; None where it was damaged, moved or sealed with another key."""
    return _decrypt_box(key, sealed, name.encode())


def parse_wrapped_key(data: bytes) -> WrappedKey:
    """Raises ValueError."""
    vault = msgspec.json.decode(data, type=WrappedKey)
    # Numbers of somebody else's choice could make this take forever.
    if vault.v != 1 or vault.cost > 1 << 20 or vault.block > 32 or vault.lanes > 16:
        raise ValueError("a newer Sylph has written it")
    return vault


def _decrypt_box(key: bytes, box: str, about: bytes) -> bytes | None:
    require_library()
    from nacl.exceptions import CryptoError

    try:
        return _make_cipher(key).decrypt(b64decode(box, validate=True), about)
    except (CryptoError, binascii.Error):
        return None


def _make_cipher(key: bytes) -> Any:
    """XChaCha20-Poly1305 of libsodium, imported only where there is a passphrase."""
    require_library()
    from nacl.secret import Aead

    return Aead(key)


def _derive_key(passphrase: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    memory = 128 * cost * block * lanes + (1 << 20)
    return hashlib.scrypt(passphrase.encode(), salt=salt, n=cost, r=block, p=lanes, maxmem=memory, dklen=SIZE)


def _encode_base64(data: bytes) -> str:
    return b64encode(data).decode()
