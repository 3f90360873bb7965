"""Bytes that only this Sylph home can read: for what must be kept whole, and yet not lie about in plain.

They are mixed with a keystream, SHAKE-128 over a key that is used for one content only. That hides; whoever has to know
that nothing was changed keeps a digest as well. Standard library only: the journaled runner uses it too.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import shake_128
else:
    # Without what else comes along with hashlib: the runner has to start in no time.
    from _sha3 import shake_128

BLOCK = 512
KEY_BYTES = 32
NONCE_BYTES = 16
# No JSON, no msgpack and no text begins with it.
ENCRYPTED_MARK = b"\xc1sealed\0"

KeySource = Callable[[], bytes]
"""The key of this home, made when it is first asked for; empty where nothing is sealed."""


def no_key() -> bytes:
    return b""


def derive_key(key: bytes, name: str | bytes) -> bytes:
    """A key for one thing alone: it tells nothing of the key it comes from."""
    return shake_128(b"sylph\0" + key + (name.encode() if isinstance(name, str) else name)).digest(KEY_BYTES)


def apply_keystream(data: bytes, key: bytes) -> bytes:
    """`data` sealed; and what is sealed, plain again."""
    return _xor_bytes(data, shake_128(b"whole\0" + key).digest(len(data)))


def apply_keystream_at(data: bytes, key: bytes, at: int) -> bytes:
    """The same for a part of a whole that grows, which begins `at` this place in it."""
    first, skip = divmod(at, BLOCK)
    last = (at + len(data) + BLOCK - 1) // BLOCK
    stream = b"".join(shake_128(key + number.to_bytes(8, "big")).digest(BLOCK) for number in range(first, last))
    return _xor_bytes(data, stream[skip : skip + len(data)])


def encrypt_bytes(data: bytes, key: bytes) -> bytes:
    """A whole file, sealed so that it can be told from one that is not; without a key it stays as it is."""
    if not key:
        return data
    nonce = os.urandom(NONCE_BYTES)
    return ENCRYPTED_MARK + nonce + apply_keystream(data, derive_key(key, nonce))


def decrypt_bytes(data: bytes, key: bytes) -> bytes:
    """What `closed` was given."""
    if not data.startswith(ENCRYPTED_MARK):
        return data
    at = len(ENCRYPTED_MARK) + NONCE_BYTES
    return apply_keystream(data[at:], derive_key(key, data[len(ENCRYPTED_MARK) : at]))


def _xor_bytes(data: bytes, stream: bytes) -> bytes:
    return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(len(data), "little")
