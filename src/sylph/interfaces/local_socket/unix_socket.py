"""Where a server of this home can be reached: its socket, its lock and what it says of itself."""

import errno
import os
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SOCKET_NAME = "sylph.sock"
# What the kernel takes as the name of a socket, without its end.
MAX_PATH_BYTES = 107


@contextmanager
def short_socket_path(path: Path) -> Generator[str, None, None]:
    """A name for a socket that the kernel takes, also where its path is too long for it."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def connect_socket(path: Path, seconds: float) -> socket.socket | None:
    """A connection to whoever listens there; None where nobody does: the file may be what a dead server has left."""
    if not path.exists():
        return None
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(seconds)
    try:
        with short_socket_path(path) as name:
            made.connect(name)
    except OSError as error:
        made.close()
        if isinstance(error, TimeoutError) or error.errno == errno.EAGAIN:
            raise TimeoutError from error
        return None
    made.settimeout(None)
    if not _is_own_peer(made):
        made.close()
        return None
    return made


def _is_own_peer(made: socket.socket) -> bool:
    """Whether it is this user, or root, who listens, where the system tells: nobody else is told anything."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack("3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return user in (0, os.getuid())
