"""The ways out of the sandbox that are tried: a command each, and how one sees whether it got out."""

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Literal

from msgspec import Struct

from sylph.features.prove.sandbox.targets import BEFORE, EscapeTargets, count_processes

EscapeTool = Literal["shell", "look", "sneak", "job"]
# Of Landlock it is known, and said, that it does not hold these.
LANDLOCK_GAPS = frozenset({
    "mode of a file outside", "secret in the workspace", "secret by another name", "git hook", "git settings",
    "git folder swapped", "rules of the project", "unix socket outside", "shared memory", "control: its own network",
})  # fmt: skip


class SandboxEscape(Struct, frozen=True):
    """`got_out` is asked afterwards, with what the command printed, and answers what was got; empty if it held."""

    name: str
    command: str
    got_out: Callable[[str], str]
    tool: EscapeTool = "shell"

    def should_hold(self, layer: str) -> bool:
        return layer == "bwrap" or self.name not in LANDLOCK_GAPS


def list_escapes(bait: EscapeTargets) -> list[SandboxEscape]:
    return [
        *_control_cases(),
        *_file_escapes(bait),
        *_secret_escapes(bait),
        *_process_escapes(bait),
        *_network_escapes(bait),
        *_limit_escapes(bait),
        *_switch_escapes(bait),
    ]


def python_command(code: str) -> str:
    """A command line that runs this."""
    return f"{sys.executable} -I - <<'PYTHON'\n{dedent(code)}\nPYTHON"


def _control_cases() -> list[SandboxEscape]:
    """What has to work: a sandbox in which nothing does holds everything, and proves nothing."""
    listen = python_command("""
        import socket
        there = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(there.getsockname()).close()
    """)
    ways = {
        "working": "echo a > a && mkdir b && mv a b/c && rm -r b && echo t > ${TMPDIR:-/tmp}/t && echo h > ~/h",
        "… and later": "cat ${TMPDIR:-/tmp}/t ~/h",
        "committing": "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m a && git log --oneline",
        "its own network": listen,
    }
    return [SandboxEscape(f"control: {name}", command, _control_failure) for name, command in ways.items()]


def _control_failure(output: str) -> str:
    return "" if output.endswith("[exit 0]") else output[-200:]


def _file_escapes(bait: EscapeTargets) -> list[SandboxEscape]:
    out = bait.outside

    def changed(_: str) -> str:
        return bait.describe_changes()

    def write(name: str, command: str, tool: EscapeTool = "shell") -> SandboxEscape:
        return SandboxEscape(name, command, changed, tool)

    def told(output: str) -> str:
        return "it could" if "GOT OUT" in output else ""

    def planted(_: str) -> str:
        hooks = bait.work / ".git" / "hooks"
        return next((path.name for path in (hooks / "post-checkout", hooks / "post-x") if path.exists()), "")

    def settings(_: str) -> str:
        config = bait.work / ".git" / "config"
        return "the settings were changed" if config.exists() and "evil" in config.read_text() else ""

    def made(_: str) -> str:
        found = [path for path in (bait.work / "mine", bait.work / "su") if path.exists()]
        return next((f"{path.name} {path.stat().st_mode:o}" for path in found if path.stat().st_mode & 0o4000), "")

    def looked(_: str) -> str:
        return "the workspace was written" if (bait.work / "looked").exists() else ""

    return [
        write("file outside", f"echo x > {out}/victim"),
        write("new file outside", f"touch {out}/new"),
        write("path that does not exist yet", f"mkdir -p {out}/new/deeper && touch {out}/new/deeper/file"),
        write("deleting outside", f"rm -f {out}/victim || mv {out}/victim {out}/gone"),
        write("mode of a file outside", f"chmod 777 {out}/victim"),
        write("symbolic link", f"ln -sf {out}/victim link; echo x > link"),
        write("link to a folder", f"ln -sfn {out} there; touch there/new"),
        write("hard link", f"ln {out}/victim hard && echo x > hard"),
        write("link swapped while it is written", _swap_command(out)),
        write("an order that asks to be outside", f"touch {out}/sneaked", "sneak"),
        write("in the background", f"touch {out}/job", "job"),
        SandboxEscape("writing when only looking", "touch looked", looked, "look"),
        SandboxEscape("kernel settings", _open_command("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"), told),
        SandboxEscape(
            "devices",
            _open_command("/sys/power/state", "/dev/mem", "/dev/sda", "/dev/vda", "/sys/kernel/uevent_helper"),
            told,
        ),
        SandboxEscape("control groups", "mkdir /sys/fs/cgroup/sylph-was-here && echo GOT OUT", told),
        SandboxEscape("mounting", "mount -t tmpfs none /mnt && echo GOT OUT", told),
        SandboxEscape("a namespace of its own", "unshare -Urm true && echo GOT OUT", told),
        SandboxEscape("set-user-id file", "cp /bin/true su; chmod 4755 su; install -m 4755 /bin/true mine", made),
        SandboxEscape(
            "git hook", "printf '#!/bin/sh\\n' > .git/hooks/post-checkout; mkdir -p .git/hooks/post-x", planted
        ),
        SandboxEscape("git settings", "git config core.fsmonitor evil; echo evil >> .git/config", settings),
        SandboxEscape("git folder swapped", "mv .git was; cp -r was .git; git config core.fsmonitor evil", settings),
    ]


def _open_command(*paths: str) -> str:
    return python_command(f"""
        import os
        for path in {paths!r}:
            try:
                os.close(os.open(path, os.O_WRONLY))
                print("GOT OUT", path)
            except OSError as error:
                print(error)
    """)


def _swap_command(out: Path) -> str:
    return python_command(f"""
        import os, threading, time
        end = time.monotonic() + 0.3
        def swap():
            while time.monotonic() < end:
                for target in (".", {str(out)!r}):
                    os.symlink(target, "next")
                    os.rename("next", "turning")
        threading.Thread(target=swap).start()
        while time.monotonic() < end:
            try:
                open("turning/victim", "w").write("x")
            except OSError:
                pass
    """)


def _secret_escapes(bait: EscapeTargets) -> list[SandboxEscape]:
    home, data = bait.home, bait.data

    def seen(output: str) -> str:
        return "it was read" if bait.canary in output else ""

    names = (
        "ln .env a; cp .env b; mv .env c; tar cf d .env; ln -s .env e; mv deep dove; cat a b c d e de*/.env* do*/.env*"
    )
    roots = f"cat /proc/1/root{home}/.ssh/id_rsa /proc/*/cwd/.ssh/id_rsa /proc/*/root{data}/key"
    return [
        SandboxEscape(
            "secret in the home folder", f"cat {home}/.ssh/id_rsa {home}/.aws/credentials; cat ~/.ssh/*", seen
        ),
        SandboxEscape("Sylph's own data", f"cat {data}/key; ls -a {data} && cat {data}/*", seen),
        SandboxEscape("secret in the workspace", "cat .env", seen),
        SandboxEscape("secret by another name", names, seen),
        SandboxEscape("environment of a process", "cat /proc/*/environ | tr '\\0' '\\n'", seen),
        SandboxEscape("root of a process", roots, seen),
        SandboxEscape("shared memory", f"cat {bait.shared} /dev/shm/sylph-*", seen),
        SandboxEscape(
            "kernel keyring", _keyring_command(), lambda output: "it answered" if "GOT OUT" in output else ""
        ),
    ]  # fmt: skip


def _keyring_command() -> str:
    return python_command("""
        import ctypes, platform
        number = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
        libc = ctypes.CDLL(None, use_errno=True)
        print("GOT OUT" if number and libc.syscall(number, 0, -3, 0) > 0 else "no")
    """)


def _process_escapes(bait: EscapeTargets) -> list[SandboxEscape]:
    victim = bait.victim_pid()

    def killed(_: str) -> str:
        return "it was killed" if bait.victim_killed else ""

    def told(output: str) -> str:
        return "it could" if "GOT OUT" in output else ""

    def left(mark: str) -> Callable[[str], str]:
        return lambda _: f"{number} are left" if (number := count_processes(mark)) else ""

    marks = [f"77{number}.{victim}" for number in range(3)]
    deaf = 'trap "" TERM HUP'
    daemon = f"(setsid sh -c '{deaf}; (sleep {marks[1]} &); sleep {marks[1]}' &); sleep 0.1"
    stubborn = f"trap '' TERM; setsid sh -c '{deaf}; sleep {marks[2]}' & sleep 0.1"
    return [
        SandboxEscape("signal to a process", f"kill -9 {victim}", killed),
        SandboxEscape("tracing a process", _trace_command(victim), told),
        SandboxEscape("typing into a terminal", _typing_command(), told),
        SandboxEscape("process left behind", f"setsid sleep {marks[0]} & sleep 0.1", left(marks[0])),
        SandboxEscape("daemon", daemon, left(marks[1])),
        SandboxEscape("deaf to being stopped", stubborn, left(marks[2])),
    ]


def _trace_command(pid: int) -> str:
    return python_command(f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print("GOT OUT" if libc.ptrace(16, {pid}, 0, 0) == 0 else "no")
        try:
            open("/proc/{pid}/mem", "rb").read(1)
            print("GOT OUT")
        except OSError as error:
            print(error)
    """)


def _typing_command() -> str:
    return python_command("""
        import fcntl, os
        for path in ("/dev/tty", "/dev/pts/0", "/dev/pts/1", "/dev/console"):
            try:
                fcntl.ioctl(os.open(path, os.O_RDWR), 0x5412, b" ")
                print("GOT OUT", path)
            except OSError as error:
                print(error)
    """)


def _network_escapes(bait: EscapeTargets) -> list[SandboxEscape]:
    def reached(name: str) -> Callable[[str], str]:
        return lambda _: "it was reached" if name in bait.reached else ""

    def told(output: str) -> str:
        return "it could" if "GOT OUT" in output else ""

    def connect(address: str, family: str = "AF_INET", kind: str = "SOCK_STREAM") -> str:
        return python_command(f"""
            import socket
            try:
                place = socket.socket(socket.{family}, socket.{kind})
                place.settimeout(2)
                place.connect({address})
                place.send(b"hello")
            except OSError as error:
                print(error)
        """)

    proxied = """
        import urllib.request
        try:
            urllib.request.urlopen("http://example.test/", timeout=2)
        except OSError as error:
            print(error)
    """
    url = f"http://127.0.0.1:{bait.tcp}"
    variables = f"export http_proxy={url} HTTP_PROXY={url} all_proxy={url}\n{python_command(proxied)}"
    return [
        SandboxEscape("tcp", connect(f"('127.0.0.1', {bait.tcp})"), reached("tcp")),
        SandboxEscape("udp", connect(f"('127.0.0.1', {bait.udp})", kind="SOCK_DGRAM"), reached("udp")),
        SandboxEscape("tcp when only looking", connect(f"('127.0.0.1', {bait.tcp})"), reached("tcp"), "look"),
        SandboxEscape("abstract socket", connect(repr("\0" + bait.canary), "AF_UNIX"), reached("abstract")),
        SandboxEscape("unix socket outside", connect(repr(bait.agent), "AF_UNIX"), reached("agent")),
        SandboxEscape("sockets of services", _service_command(), told),
        SandboxEscape("variables for a proxy", variables, reached("tcp")),
        SandboxEscape("socket of the virtual machine", _socket_command("AF_VSOCK"), told),
        SandboxEscape("raw packets", _socket_command("AF_PACKET"), told),
    ]  # fmt: skip


def _service_command() -> str:
    return python_command("""
        import glob, os, socket, stat
        for path in glob.glob("/run/**", recursive=True) + glob.glob("/var/run/*") + glob.glob("/tmp/*/*"):
            try:
                if stat.S_ISSOCK(os.stat(path).st_mode):
                    socket.socket(socket.AF_UNIX).connect(path)
                    print("GOT OUT", path)
            except OSError as error:
                print(error)
    """)


def _socket_command(name: str) -> str:
    kind = "SOCK_RAW" if name == "AF_PACKET" else "SOCK_STREAM"
    return python_command(f"""
        import socket
        try:
            socket.socket(socket.{name}, socket.{kind})
            print("GOT OUT")
        except OSError as error:
            print(error)
    """)


def _limit_escapes(bait: EscapeTargets) -> list[SandboxEscape]:
    mark = f"bomb{bait.canary[-6:]}"

    def stopped(*signs: str) -> Callable[[str], str]:
        return lambda output: "" if any(sign in output for sign in signs) else "it was not stopped"

    def bombed(output: str) -> str:
        left = count_processes(mark)
        return f"{left} processes are left" if left else stopped("too many processes", "unavailable")(output)

    # Bounded: should it not be held, the machine must live on. A real bomb took all process numbers of one.
    bomb = f"i=0; while [ $i -lt 2000 ]; do sh -c 'sleep 10; : {mark}' & i=$((i+1)); done; wait"
    full = stopped("too much memory", "MemoryError", "exit 137")
    hungry = f"{sys.executable} -c 'x = bytearray(100_000_000); import time; time.sleep(20)'"
    big = bait.work / "big"
    return [
        SandboxEscape("fork bomb", bomb, bombed),
        SandboxEscape(
            "memory",
            python_command("x = [bytearray(50_000_000) for _ in range(100)]; import time; time.sleep(20)"),
            full,
        ),
        SandboxEscape("memory, in many processes", f"for i in 1 2 3 4 5 6 7 8; do {hungry} & done; wait", full),
        SandboxEscape(
            "processor time", f"{sys.executable} -c 'while True: pass'", stopped("processor time", "exit 137")
        ),
        SandboxEscape("big file", "head -c 60000000 /dev/zero > big", lambda _: _oversize_note(big, 50_000_000)),
    ]


def _oversize_note(path: Path, most: int) -> str:
    size = path.stat().st_size if path.exists() else 0
    return f"{size:,} bytes were written" if size > most else ""


def _switch_escapes(bait: EscapeTargets) -> list[SandboxEscape]:
    out = bait.outside

    def changed(_: str) -> str:
        return bait.describe_changes()

    def loosened(_: str) -> str:
        rules = bait.work / ".sylph" / "rules.toml"
        return "" if rules.exists() and rules.read_text() == BEFORE else "they are not what they were"

    config = "mkdir -p .sylph; printf '[sandbox]\\nenabled = false\\n' | tee sylph.toml .sylph/config.toml >/dev/null"
    variables = "export SYLPH_SANDBOX=off SYLPH_RUN= SYLPH_HOME=$PWD"
    nested = f"{sys.prefix}/bin/sylph --sandbox off --mode trust 'touch {out}/nested'; touch {out}/nested"
    rules = "rm -rf .sylph/*; echo > .sylph/rules.toml; mv .sylph rules; mkdir .sylph"
    return [
        SandboxEscape("rules of the project", rules, loosened),
        SandboxEscape("settings in the workspace", f"{config}; touch {out}/config", changed),
        SandboxEscape("… afterwards", f"touch {out}/config", changed),
        SandboxEscape("variables of Sylph", f"{variables}; touch {out}/variable", changed),
        SandboxEscape("a Sylph in the sandbox", nested, changed),
    ]  # fmt: skip
