"""The weaker layer: the same command behind Landlock and a filter for system calls, in the same file system."""

import json
import os
import resource
import sys
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from sylph.core.command_run import CommandSpec
from sylph.engine.sandbox import landlock_launcher, seccomp
from sylph.engine.sandbox.bwrap import filter_environment
from sylph.engine.sandbox.path_visibility import PathVisibility, is_within
from sylph.engine.sandbox.policy import CommandRights, SandboxLimits

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm", "/dev/pts")
PRIVATE_FOLDERS = ("tmp", "home")


def confine_command(
    order: CommandSpec, rights: CommandRights, places: PathVisibility, caps: SandboxLimits, *, abi: int, network: bool
) -> CommandSpec:
    """The order, to be run by the launcher. Its temporary and home folder have to be other paths than usual."""
    private, workspace = str(rights.private), str(rights.workspace)
    own = [f"{private}/{name}" for name in PRIVATE_FOLDERS]
    shown = [path for path in places.shown if not is_within(path, places.secret)]
    cut = [*places.hidden, *(path for path in places.secret if not is_within(path, places.hidden)), private, "/dev"]
    env, lent = filter_environment(order.env), [order.lent] if order.lent else []
    told = {
        "abi": abi,
        "cwd": order.cwd,
        "read": [*_paths_except("/", cut), *shown, *lent, *(() if rights.writes else (workspace,))],
        "write": [*own, *DEVICES, *((workspace,) if rights.writes else ())],
        "network": network,
        "filter": seccomp.build_filter(network=network).hex(),
        "limits": [[resource.RLIMIT_CORE, 0], *_resource_limits(caps)],
        "env": {**env, "TMPDIR": own[0], "HOME": own[1]},
    }
    argv = (sys.executable, "-I", "-S", landlock_launcher.__file__, json.dumps(told), *order.argv)
    return replace(order, argv=argv, cwd="/", env={})


def _paths_except(folder: str, cut: Iterable[str]) -> Iterator[str]:
    """What is in a folder, but for some paths: rules can only add."""
    inside = [path for path in cut if is_within(path, (folder,))]
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
            yield from _paths_except(path, inside)


def _resource_limits(caps: SandboxLimits) -> Iterator[list[int]]:
    told = (
        (resource.RLIMIT_NOFILE, caps.files),
        (resource.RLIMIT_FSIZE, caps.file_size),
        (resource.RLIMIT_CPU, round(caps.cpu)),
    )
    return ([which, most] for which, most in told if most)
