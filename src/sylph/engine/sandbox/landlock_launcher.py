"""Gives up what a command must not have, then becomes it: Landlock, a filter for system calls, limits.

A script that needs nothing but the standard library. Its one argument of its own is a line of JSON:
read, write: paths; scoped: whether to cut signals and abstract sockets off; filter: hex; limits: [[which, most], …];
env: the command's own environment; cwd. The command follows.
"""

import contextlib
import ctypes
import json
import os
import resource
import struct
import sys

CREATE, ADD, RESTRICT = 444, 445, 446
PATH_BENEATH = 1
NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
# execute, read a file, list a folder
READ_RIGHTS = EXECUTE | READ | LIST
ONLY_FILES = EXECUTE | WRITE | READ | 1 << 14 | 1 << 15
# By the version of Landlock: how many rights over files there are, over the network, and scopes.
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16, 6: 16, 7: 16}
DROP_BOUND, CAPABILITIES = 24, 64
VERSION_3 = 0x20080522
SETUP_FAILED = 125


def apply_landlock(told: dict[str, object], abi: int, libc: ctypes.CDLL) -> None:
    handled = (1 << RIGHTS[min(abi, 7)]) - 1
    network = 3 if abi >= 4 and not told["network"] else 0
    scoped = 3 if abi >= 6 else 0
    rules = struct.pack("=QQQ", handled, network, scoped)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _check_result(libc.syscall(CREATE, rules, len(rules), 0))
    for paths, rights in ((told["read"], READ_RIGHTS), (told["write"], handled)):
        assert isinstance(paths, list)
        for path in paths:  # pyright: ignore[reportUnknownVariableType] - a line of JSON
            _allow_path(libc, ruleset, str(path), rights & handled)  # pyright: ignore[reportUnknownArgumentType]
    _check_result(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
    _check_result(libc.syscall(RESTRICT, ruleset, 0))
    os.close(ruleset)


def _allow_path(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    folder = os.path.isdir(path)
    rule = struct.pack("=Qi", rights if folder else rights & ONLY_FILES, fd)
    _check_result(libc.syscall(ADD, ruleset, PATH_BENEATH, rule, 0))
    os.close(fd)


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """Gives up the rights of root, if this is root: some of them reach past Landlock."""
    if os.geteuid():
        return
    for number in range(CAPABILITIES):
        libc.prctl(DROP_BOUND, number, 0, 0, 0)
    _check_result(libc.capset(struct.pack("=Ii", VERSION_3, 0), bytes(24)))


def load_seccomp(libc: ctypes.CDLL, program: bytes) -> None:
    """Loads the filter for system calls."""
    steps = ctypes.create_string_buffer(program)
    told = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
    _check_result(libc.prctl(SET_SECCOMP, FILTER, told, 0, 0))


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def main() -> None:
    told = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        os.chdir(told["cwd"])
        for which, most in told["limits"]:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(which, (most, most))
        drop_capabilities(libc)
        apply_landlock(told, told["abi"], libc)
        if told["filter"]:
            load_seccomp(libc, bytes.fromhex(told["filter"]))
        os.execvpe(sys.argv[2], sys.argv[2:], {**told["env"], **_run_marker()})
    except OSError as error:
        sys.stderr.write(f"the sandbox could not be set up: {error}\n")
        sys.stderr.flush()
        os._exit(SETUP_FAILED)


def _run_marker() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name == "SYLPH_RUN"}


if __name__ == "__main__":
    main()
