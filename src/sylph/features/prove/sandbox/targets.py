"""What the escape suite tries to get at: files, secrets, processes and services beside a workspace, and their state."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from msgspec import Struct, field

BEFORE = "untouched\n"
MODE = 0o640
MAX_SOCKET_PATH = 100


class EscapeTargets(Struct, dict=True):
    """Lies outside of the workspace, and tells whether somebody was at it."""

    root: Path
    canary: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")
    reached: set[str] = field(default_factory=set[str])
    _open: list[socket.socket] = field(default_factory=list[socket.socket])
    _victims: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def home(self) -> Path:
        return self.root / "person"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def data(self) -> Path:
        return self.root / "sylph" / "data"

    @property
    def shared(self) -> Path:
        """In the folder that all programs share memory by."""
        return Path("/dev/shm") / f"sylph-{self.root.name}"

    def create_all(self) -> None:
        for folder in (self.work, self.outside, self.data, self.home / ".ssh", self.home / ".aws"):
            folder.mkdir(parents=True, mode=0o700)
        for path in (self.home / ".ssh" / "id_rsa", self.home / ".ssh" / "config", self.home / ".aws" / "credentials"):
            path.write_text(self.canary)
        (self.data / "key").write_text(self.canary)
        (self.work / ".env").write_text(f"SECRET={self.canary}\n")
        (self.work / ".sylph").mkdir()
        (self.work / ".sylph" / "rules.toml").write_text(BEFORE)
        (self.work / "deep").mkdir()
        (self.work / "deep" / ".env.production").write_text(f"SECRET={self.canary}\n")
        victim = self.outside / "victim"
        victim.write_text(BEFORE)
        victim.chmod(MODE)
        git = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1"}
        with contextlib.suppress(OSError):
            subprocess.run(["git", "init", "-q", str(self.work)], env=git, check=False, capture_output=True)
        with contextlib.suppress(OSError):
            self.shared.write_text(self.canary)
        self.start_servers()
        self.victim_pid()

    def victim_pid(self) -> int:
        """A process of the same user, with a secret in its environment; a new one if the last was killed."""
        if not self._victims or self._victims[-1].poll() is not None:
            sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
            self._victims.append(subprocess.Popen(sleep, env={"CANARY": self.canary}))
        return self._victims[-1].pid

    @property
    def victim_killed(self) -> bool:
        return any(each.poll() is not None for each in self._victims)

    def start_servers(self) -> None:
        self.tcp = self._listen_on("tcp", socket.AF_INET, ("127.0.0.1", 0))
        self.udp = self._listen_on("udp", socket.AF_INET, ("127.0.0.1", 0), kind=socket.SOCK_DGRAM)
        self._listen_on("abstract", socket.AF_UNIX, f"\0{self.canary}")
        self.agent = str(self.outside / "agent")
        if len(self.agent) >= MAX_SOCKET_PATH:
            # The path of a socket must be short. There it is hidden with its folder, which is less of a trial.
            (self.outside / "agent").touch()
            self.agent = f"{tempfile.mkdtemp(prefix='sylph-')}/agent"
        self._listen_on("agent", socket.AF_UNIX, self.agent)

    def _listen_on(self, name: str, family: int, address: object, kind: int = socket.SOCK_STREAM) -> int:
        server = socket.socket(family, kind)
        server.bind(address)  # pyright: ignore[reportArgumentType] - of the family's own kind
        self._open.append(server)
        if kind == socket.SOCK_STREAM:
            server.listen()
        threading.Thread(target=self._record_connections, args=(name, server), daemon=True).start()
        return server.getsockname()[1] if family == socket.AF_INET else 0

    def _record_connections(self, name: str, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while server.recvfrom(100) if server.type == socket.SOCK_DGRAM else server.accept():
                self.reached.add(name)

    def describe_changes(self) -> str:
        """What is not as it was laid outside of the workspace."""
        victim, found = self.outside / "victim", sorted(path.name for path in self.outside.iterdir())
        if found != ["agent", "victim"]:
            return f"outside are {', '.join(found)}"
        if victim.read_text() != BEFORE:
            return "the file was written"
        if victim.stat().st_mode & 0o7777 != MODE:
            return f"its mode is {victim.stat().st_mode & 0o7777:o}"
        return ""

    def reset_files(self) -> None:
        """As it was, for the next try."""
        victim = self.outside / "victim"
        for path in self.outside.iterdir():
            if path.name not in ("agent", "victim"):
                subprocess.run(["rm", "-rf", str(path)], check=False)
        victim.write_text(BEFORE)
        victim.chmod(MODE)
        self.reached.clear()

    def remove_all(self) -> None:
        for server in self._open:
            server.close()
        for process in self._victims:
            process.kill()
            process.wait()
        for path in (self.shared, Path(self.agent)):
            with contextlib.suppress(OSError):
                path.unlink()
        if not Path(self.agent).is_relative_to(self.root):
            Path(self.agent).parent.rmdir()


def count_processes(mark: str) -> int:
    """How many processes have `mark` in their command line."""
    found = 0
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            found += path.name.isdigit() and mark.encode() in (path / "cmdline").read_bytes()
    return found
