"""A filter for system calls that no command of a workspace needs, as the kernel's own little program.

It closes what namespaces leave open: sockets that know no namespaces (vsock reaches the host of a virtual machine),
the kernel's keyrings, typing into a terminal, and doors into the kernel that were often found unlocked.
"""

import os
import struct
from typing import NamedTuple

EPERM, EACCES, ENOSYS, EAFNOSUPPORT = 1, 13, 38, 97
LOAD, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER, ARCH, FIRST, SECOND = 0, 4, 16, 24
ARGUMENT = 8
SETUID = 0o4000
X32 = 0x40000000
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

# io_uring makes system calls that no filter sees, openat2 has its mode where none can look
_SAME = {
    425: ENOSYS,
    426: ENOSYS,
    427: ENOSYS,
    437: ENOSYS,
    **dict.fromkeys((428, 429, 430, 431, 432, 433, 442), EPERM),
}
# add_key request_key keyctl bpf perf_event_open userfaultfd mount umount2 pivot_root setns init_module delete_module
# finit_module kexec_load kexec_file_load open_by_handle_at quotactl acct swapon swapoff reboot
_X86 = (248, 249, 250, 321, 298, 323, 165, 166, 155, 308, 175, 176, 313, 246, 320, 304, 179, 163, 167, 168, 169)
_ARM = (217, 218, 219, 280, 241, 282, 40, 39, 41, 268, 105, 106, 273, 104, 294, 265, 60, 89, 224, 225, 142)
# Where the mode of a file is given: open creat mknod chmod fchmod, openat mknodat fchmodat fchmodat2
_X86_MODES = {2: 2, 85: 1, 133: 1, 90: 1, 91: 1, 257: 3, 259: 2, 268: 2, 452: 2}
_ARM_MODES = {52: 1, 56: 3, 33: 2, 53: 2, 452: 2}


class SyscallTable(NamedTuple):
    """The kernel's name for it, and its numbers of system calls."""

    arch: int
    socket: int
    ioctl: int
    denied: tuple[int, ...]
    modes: dict[int, int]


MACHINES = {
    "x86_64": SyscallTable(0xC000003E, 41, 16, _X86, _X86_MODES),
    "aarch64": SyscallTable(0xC00000B7, 198, 29, _ARM, _ARM_MODES),
}

Instruction = tuple[int, int, int, int]


def build_filter(machine: str = "", *, network: bool = True) -> bytes:
    """The filter; without `network` it refuses internet sockets too. Empty for machines it does not know."""
    known = MACHINES.get(machine or os.uname().machine)
    if known is None:
        return b""
    steps: list[Instruction] = [
        (LOAD, 0, 0, ARCH),
        (JUMP_EQ, 1, 0, known.arch),
        _refuse_with(ENOSYS),
        (LOAD, 0, 0, NUMBER),
    ]
    if known is MACHINES["x86_64"]:
        steps += [(JUMP_GE, 0, 1, X32), _refuse_with(ENOSYS)]
    for number, error in {**dict.fromkeys(known.denied, EPERM), **_SAME}.items():
        steps += [(JUMP_EQ, 0, 1, number), _refuse_with(error)]
    for number, place in known.modes.items():
        # Nobody outside is to be made somebody else by a file from in here.
        mode = (LOAD, 0, 0, FIRST + ARGUMENT * place)
        steps += _on_syscall(number, [mode, (JUMP_SET, 0, 1, SETUID), _refuse_with(EPERM), (RETURN, 0, 0, ALLOW)])
    families = [UNIX, NETLINK, *((INET, INET6) if network else ())]
    allowed = [step for family in families for step in ((JUMP_EQ, 0, 1, family), (RETURN, 0, 0, ALLOW))]
    steps += _on_syscall(
        known.socket, [(LOAD, 0, 0, FIRST), *allowed, _refuse_with(EAFNOSUPPORT if network else EACCES)]
    )
    typing = [step for request in (TIOCSTI, TIOCLINUX) for step in ((JUMP_EQ, 0, 1, request), _refuse_with(EPERM))]
    steps += _on_syscall(known.ioctl, [(LOAD, 0, 0, SECOND), *typing, (RETURN, 0, 0, ALLOW)])
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _refuse_with(error: int) -> Instruction:
    return (RETURN, 0, 0, ERRNO | error)


def _on_syscall(number: int, then: list[Instruction]) -> list[Instruction]:
    return [(JUMP_EQ, 0, len(then), number), *then]
