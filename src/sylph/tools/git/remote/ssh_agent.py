"""A key lent to one command: an agent that signs with it and gives it to nobody, for as long as the command runs."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

from msgspec import Struct

from sylph.core.errors import UserError
from sylph.tools.git.git_process import run_program
from sylph.tools.git.remote.settings import GitRemote, GitRemoteStore

AGENT, HOSTS, PUBLIC = "agent", "known_hosts", "key.pub"
# The agent ends when this does, and this ends when whoever holds the other end of its input is gone, also by a kill.
HOLD = ("/bin/sh", "-c", "read _")
START = 5.0
# So ssh-add ends where no agent listens yet.
ABSENT = 2
# No longer than any git command may take.
LIFETIME = "1000"
COMMON = (
    "ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null"
    " -o UpdateHostKeys=no -o ForwardAgent=no -o ConnectTimeout=15"
)


class SshEnvironment(Struct, frozen=True):
    """`folder` holds all that the command needs, and nothing that is secret; `env` names what is in it."""

    folder: str
    env: Mapping[str, str]


@asynccontextmanager
async def open_ssh_environment(
    remotes: GitRemoteStore, remote: GitRemote, environ: Mapping[str, str]
) -> AsyncGenerator[SshEnvironment, None]:
    """What ssh needs for this remote. Raises UserError where the machine has no ssh."""
    folder = Path(mkdtemp(prefix="sylph-ssh-"))
    key = remotes.key_path(Path(remote.root))
    agent: asyncio.subprocess.Process | None = None
    try:
        (folder / HOSTS).write_text("".join(f"{line}\n" for line in remote.known_hosts))
        if key:
            (folder / PUBLIC).write_text(f"{remotes.public_key(Path(remote.root))}\n")
            agent = await _start_agent(folder, key, environ)
        yield SshEnvironment(
            str(folder), {"GIT_SSH_COMMAND": _ssh_command(folder, keyed=bool(key)), "GIT_SSH_VARIANT": "ssh"}
        )
    finally:
        # Without its socket nobody reaches the agent any more; it ends by itself.
        shutil.rmtree(folder, ignore_errors=True)
        if agent and agent.stdin:
            agent.stdin.close()
            await agent.wait()


def _ssh_command(folder: Path, *, keyed: bool) -> str:
    own = f" -o IdentityAgent={folder}/{AGENT} -o IdentityFile={folder}/{PUBLIC} -o IdentitiesOnly=yes"
    return f"{COMMON} -o UserKnownHostsFile={folder}/{HOSTS}{own if keyed else ''}"


async def _start_agent(folder: Path, key: Path, environ: Mapping[str, str]) -> asyncio.subprocess.Process:
    env = {"PATH": environ.get("PATH", ""), "LC_ALL": "C"}
    socket = str(folder / AGENT)
    try:
        agent = await asyncio.create_subprocess_exec(
            *("ssh-agent", "-a", socket, *HOLD),
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise UserError("ssh-agent cannot be started.", kind="no_program", next=["install OpenSSH"]) from error
    add = ("ssh-add", "-q", "-t", LIFETIME, str(key))
    try:
        async with asyncio.timeout(START):
            # Nobody tells when it listens.
            while (said := await run_program(add, {**env, "SSH_AUTH_SOCK": socket})).code == ABSENT:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        if said.code:
            raise UserError(f"The SSH key cannot be used: {said.err.strip()}", kind="bad_key", next=["set it anew"])
    except BaseException as error:
        assert agent.stdin
        agent.stdin.close()
        if isinstance(error, TimeoutError):
            raise UserError("ssh-agent does not answer.", kind="no_program", next=["install OpenSSH"]) from error
        raise
    return agent
