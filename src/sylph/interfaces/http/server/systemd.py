"""What a supervisor such as systemd tells a server, and is told by it: plain variables and one datagram each."""

import os
import shlex
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress

from sylph.core.errors import UserError

FIRST_FD = 3


def notify_supervisor(environ: Mapping[str, str], state: str) -> None:
    """Tells the supervisor, where there is one. That it cannot be told harms nobody."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(state.encode())


def watchdog_interval(environ: Mapping[str, str]) -> float | None:
    """How often the supervisor wants a sign of life, in seconds; None where it wants none."""
    told, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not told.isdecimal() or int(told) == 0 or pid not in ("", str(os.getpid())):
        return None
    return int(told) / 1_000_000 / 2


def inherited_fd(environ: Mapping[str, str]) -> int | None:
    """The number of the listening socket that this process was started with, if there is one."""
    if environ.get("LISTEN_PID") != str(os.getpid()) or environ.get("LISTEN_FDS", "0") in ("", "0"):
        return None
    return FIRST_FD


def adopt_socket(fd: int) -> socket.socket:
    """A socket that listens already. Raises UserError where it is none."""
    try:
        listening = socket.socket(fileno=fd)
    except OSError as error:
        raise UserError(
            f"{fd} is no socket: {error.strerror}.", next=["--fd takes an open, listening socket"]
        ) from error
    listens = listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if listening.family not in (socket.AF_INET, socket.AF_INET6) or not listens:
        listening.detach()
        raise UserError(f"The socket {fd} does not listen on TCP.", next=["--fd takes an open, listening socket"])
    os.set_inheritable(fd, False)  # noqa: FBT003 - its own signature
    listening.setblocking(False)  # noqa: FBT003 - the same
    return listening


UNIT_TEMPLATE = """\
# ~/.config/systemd/user/sylph.service
#   systemctl --user daemon-reload
#   systemctl --user enable --now sylph
#   loginctl enable-linger    keeps it running when you log out
[Unit]
Description=Sylph
After=network-online.target

[Service]
Type=notify
ExecStart={program} serve{options}
WorkingDirectory={folder}
{environment}# Keys of models are read from here, if they are not kept by `sylph connect`: one NAME=value per line.
EnvironmentFile=-{home}/environment
Restart=on-failure
RestartSec=2
# A second start while one runs, or a wrong configuration, does not get better by itself.
RestartPreventExitStatus=2 5
WatchdogSec=60
TimeoutStopSec=30
# Commands in the background outlive the server, and are found again.
KillMode=process

[Install]
WantedBy=default.target
"""


def render_unit(home: str, folder: str, environment: Mapping[str, str], options: list[str]) -> str:
    """A unit for the user's own systemd."""
    program = shlex.join([os.path.abspath(sys.argv[0])])  # noqa: PTH100 - links are kept: they survive an upgrade
    told = "".join(f'Environment="{name}={value}"\n' for name, value in environment.items())
    said = f" {shlex.join(options)}" if options else ""
    return UNIT_TEMPLATE.format(program=program, options=said, folder=folder, environment=told, home=home)
