"""Starting a sandboxed command: what only the runner can add to its command line. Needs the standard library alone."""

import contextlib
import os
import re
import stat
from typing import Any

CHUNK = 65536
SHELL = "/bin/sh"


def build_command_line(order: dict[str, Any]) -> tuple[list[str], list[int], int | None]:
    """The command line, the open files it names by number, and the pipe on which bubblewrap tells how it went."""
    box = order.get("box")
    if not box:
        return order["argv"], [], None
    argv, held, status = build_sandbox_argv(box, order["cwd"])
    argv += (word for name, value in order["env"].items() for word in ("--setenv", name, value))
    return [*argv, "--", SHELL, "-c", box["limits"] + '; exec "$@"', "sh", *order["argv"]], held, status


def build_sandbox_argv(box: dict[str, Any], cwd: str) -> tuple[list[str], list[int], int]:
    """The same, up to what is run in there."""
    status, theirs = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    held, more = [theirs], ["--json-status-fd", str(theirs)]
    for option, path in box["holds"]:
        # What is gone by now, or became a link, has nothing to be protected.
        with contextlib.suppress(OSError):
            fd = open_without_links(path, os.O_RDONLY if option == "--seccomp" else os.O_PATH)
            held.append(fd)
            more += [option, str(fd)] if option == "--seccomp" else [option, str(fd), path]
    return [*box["head"], *more, "--chdir", cwd], held, status


def open_without_links(path: str, flags: int) -> int:
    """Opens what is at a path and nowhere else: raises OSError if a part of it is a link."""
    *parents, name = path.split("/")[1:]
    here = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for part, kind in (*((each, os.O_PATH | os.O_DIRECTORY) for each in parents), (name, flags)):
        above = here
        try:
            here = os.open(part, kind | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        finally:
            os.close(above)
    if stat.S_ISLNK(os.fstat(here).st_mode):
        os.close(here)
        raise FileNotFoundError(path)
    return here


def read_status_pipe(status: int) -> tuple[int, bool]:
    """What bubblewrap told on its pipe: the first process inside, and whether the command has run."""
    try:
        told = os.read(status, CHUNK)
    except BlockingIOError:
        told = b""
    os.close(status)
    first = re.search(rb'"child-pid": (\d+)', told)
    return int(first[1]) if first else 0, b'"exit-code"' in told
