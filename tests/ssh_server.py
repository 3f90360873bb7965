"""A real SSH server on loopback that serves one folder of git repositories to those whose keys it knows."""

import asyncio
import shlex
import subprocess
from pathlib import Path
from typing import Any

import asyncssh

SERVED = ("git-upload-pack", "git-receive-pack")


class SSHServer:
    """In a test: `async with SSHServer(folder) as server`, then `server.allow(public)`; `server.url("a.git")`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key: Any = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType]
        self._allowed = set[bytes]()
        self.commands = list[str]()
        self.refused = 0
        self.port = 0

    async def __aenter__(self) -> "SSHServer":
        self._server = await asyncssh.create_server(
            lambda: _Door(self),
            "127.0.0.1",
            0,
            server_host_keys=[self._key],
            process_factory=self._serve,
            encoding=None,
            allow_pty=False,
            agent_forwarding=False,
        )
        self.port = self._server.get_port()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def allow(self, public: str) -> None:
        self._allowed.add(asyncssh.import_public_key(public).public_data)

    def knows(self, key: Any) -> bool:
        known = key.public_data in self._allowed
        self.refused += not known
        return known

    def url(self, repository: str) -> str:
        return f"ssh://git@127.0.0.1:{self.port}/{repository}"

    @property
    def line(self) -> str:
        """What belongs into the known hosts."""
        kind, key = self._key.export_public_key().decode().split()[:2]
        return f"[127.0.0.1]:{self.port} {kind} {key}"

    async def _serve(self, process: Any) -> None:
        program, *rest = shlex.split(process.command or "")
        self.commands.append(process.command)
        if program not in SERVED:
            process.stderr.write(b"only git is served\n")
            process.exit(1)
            return
        child = await asyncio.create_subprocess_exec(
            *(program, str(self._folder / rest[-1].lstrip("/"))),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdin
        assert child.stdout
        assert child.stderr
        fed = asyncio.create_task(_pump(process.stdin, child.stdin))
        await asyncio.gather(_pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr))
        fed.cancel()
        process.exit(await child.wait())


async def _pump(source: Any, target: Any) -> None:
    while data := await source.read(65_536):
        target.write(data)
        await target.drain()
    if isinstance(target, asyncio.StreamWriter):
        target.close()


class _Door(asyncssh.SSHServer):
    def __init__(self, server: SSHServer) -> None:
        self._server = server

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - asyncssh's own signature
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: Any) -> bool:  # noqa: ARG002 - the same
        return self._server.knows(key)
