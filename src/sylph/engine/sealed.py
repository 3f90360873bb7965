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
SIZE = 32
NONCE = 16
# No JSON, no msgpack and no text begins with it.
MARK = b"\xc1sealed\0"

Key = Callable[[], bytes]
"""The key of this home, made when it is first asked for; empty where nothing is sealed."""


def unsealed() -> bytes:
    return b""


def derived(key: bytes, name: str | bytes) -> bytes:
    """A key for one thing alone: it tells nothing of the key it comes from."""
    return shake_128(b"sylph\0" + key + (name.encode() if isinstance(name, str) else name)).digest(SIZE)


def sealed(data: bytes, key: bytes) -> bytes:
    """`data` sealed; and what is sealed, plain again."""
    return _mixed(data, shake_128(b"whole\0" + key).digest(len(data)))


def sealed_at(data: bytes, key: bytes, at: int) -> bytes:
    """The same for a part of a whole that grows, which begins `at` this place in it."""
    first, skip = divmod(at, BLOCK)
    last = (at + len(data) + BLOCK - 1) // BLOCK
    stream = b"".join(shake_128(key + number.to_bytes(8, "big")).digest(BLOCK) for number in range(first, last))
    return _mixed(data, stream[skip : skip + len(data)])


def closed(data: bytes, key: bytes) -> bytes:
    """A whole file, sealed so that it can be told from one that is not; without a key it stays as it is."""
    if not key:
        return data
    nonce = os.urandom(NONCE)
    return MARK + nonce + sealed(data, derived(key, nonce))


def opened(data: bytes, key: bytes) -> bytes:
    """What `closed` was given."""
    if not data.startswith(MARK):
        return data
    at = len(MARK) + NONCE
    return sealed(data[at:], derived(key, data[len(MARK) : at]))


def _mixed(data: bytes, stream: bytes) -> bytes:
    return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(len(data), "little")
