"""The weaker layer: the same command behind Landlock and a filter for system calls, in the same file system."""

import json
import os
import resource
import sys
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from sylph.core.run import Order
from sylph.engine.sandbox import launcher, seccomp
from sylph.engine.sandbox.bwrap import kept
from sylph.engine.sandbox.places import Places, within
from sylph.engine.sandbox.terms import Caps, Grip

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm", "/dev/pts")
NAMES = ("tmp", "home")


def confined(order: Order, grip: Grip, places: Places, caps: Caps, *, abi: int, network: bool) -> Order:
    """The order, to be run by the launcher. Its temporary and home folder have to be other paths than usual."""
    private, workspace = str(grip.private), str(grip.workspace)
    own = [f"{private}/{name}" for name in NAMES]
    shown = [path for path in places.shown if not within(path, places.secret)]
    cut = [*places.hidden, *(path for path in places.secret if not within(path, places.hidden)), private, "/dev"]
    env, lent = kept(order.env), [order.lent] if order.lent else []
    told = {
        "abi": abi,
        "cwd": order.cwd,
        "read": [*_around("/", cut), *shown, *lent, *(() if grip.writes else (workspace,))],
        "write": [*own, *DEVICES, *((workspace,) if grip.writes else ())],
        "network": network,
        "filter": seccomp.program(network=network).hex(),
        "limits": [[resource.RLIMIT_CORE, 0], *_limits(caps)],
        "env": {**env, "TMPDIR": own[0], "HOME": own[1]},
    }
    argv = (sys.executable, "-I", "-S", launcher.__file__, json.dumps(told), *order.argv)
    return replace(order, argv=argv, cwd="/", env={})


def _around(folder: str, cut: Iterable[str]) -> Iterator[str]:
    """What is in a folder, but for some paths: rules can only add."""
    inside = [path for path in cut if within(path, (folder,))]
    if folder in inside:
        return
    if not inside:
        yield folder
        return
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return
    for path in (os.path.join(folder, name) for name in entries):
        # A link may lead into what is cut out; where it leads is allowed, or not, on its own account.
        if not os.path.islink(path):
            yield from _around(path, inside)


def _limits(caps: Caps) -> Iterator[list[int]]:
    told = (
        (resource.RLIMIT_NOFILE, caps.files),
        (resource.RLIMIT_FSIZE, caps.file_size),
        (resource.RLIMIT_CPU, round(caps.cpu)),
    )
    return ([which, most] for which, most in told if most)
