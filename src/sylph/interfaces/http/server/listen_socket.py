"""The sockets that the server listens on: one for the network, one for its owner."""

import os
import socket
import stat
from pathlib import Path

from sylph.core.errors import UserError
from sylph.interfaces.local_socket.unix_socket import short_socket_path

BACKLOG = 512


def resolve_host(host: str) -> str:
    """The address of a name to listen on. An empty one would mean every network there is: it is refused."""
    name = host.strip().strip("[]")
    if not name:
        raise UserError("The host to listen on is empty.", next=["sylph serve --host 127.0.0.1"])
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UserError(f"{host!r} is no address of this machine.", next=["sylph serve --host 127.0.0.1"]) from error
    return str(found[0][4][0])


def listen_tcp(address: str, port: int) -> socket.socket:
    # Only a socket that says that it is TCP is told by asyncio not to hold small packets back: 40 ms for each answer.
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
    except OSError as error:
        listening.close()
        raise UserError(
            f"{address}:{port} cannot be listened on: {error.strerror}.",
            kind="no_port",
            next=["sylph serve --port 0  takes any port that is free"],
        ) from error
    return _start_listening(listening)


def listen_local(path: Path) -> socket.socket:
    """The owner's own way in: whoever can open it can read the store as well."""
    check_private_folder(path.parent)
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        with short_socket_path(path) as name:
            listening.bind(name)
    finally:
        os.umask(mask)
    return _start_listening(listening)


def check_private_folder(folder: Path) -> None:
    """Who could put another socket into its place would be given what is meant for the server."""
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UserError(
            f"Others may write to {folder}, where the server listens for you.",
            kind="not_private",
            next=[f"chmod 700 {folder}"],
        )


def _start_listening(listening: socket.socket) -> socket.socket:
    listening.listen(BACKLOG)
    listening.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return listening
