"""The git remote of a workspace: where its commits go, as whom, with which key. The key goes in and never comes out."""

import asyncio
import hashlib
from pathlib import Path
from typing import Annotated

import msgspec
from fastapi import Header
from msgspec import Meta, Struct

from sylph.compose.engine import build_git_remotes
from sylph.core.errors import NotFound, UserError
from sylph.interfaces.http.files.workspaces import find_workspace
from sylph.interfaces.http.kit.route import RouteGroup, Versioned, check_if_match
from sylph.interfaces.http.state.server_state import ServerState
from sylph.tools.git.remote import ssh_keys
from sylph.tools.git.remote.configure import apply_remote, remote_from_repository
from sylph.tools.git.remote.probe import RemoteProbeResult, probe_remote
from sylph.tools.git.remote.settings import GitRemote, GitRemoteStore
from sylph.tools.git.remote.validation import validate_remote
from sylph.tools.git.repository import find_repository

routes = RouteGroup("git remote")
Text = Annotated[str, Meta(max_length=200)]


class GitRemoteBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of the settings; what is left out is empty then, but for the key."""

    remote: Annotated[str, Meta(max_length=100, description="What git calls the remote.")] = "origin"
    url: Annotated[
        str, Meta(max_length=2000, description="https://…, ssh://… or user@host:path; never with a password in it.")
    ] = ""
    branch: Text = ""
    name: Annotated[str, Meta(max_length=200, description="Who commits.")] = ""
    email: Text = ""
    known_hosts: Annotated[
        list[Annotated[str, Meta(max_length=4000)]],
        Meta(max_length=100, description="The hosts that are trusted, in lines as ssh-keyscan prints them."),
    ] = []
    key: (
        Annotated[str, Meta(max_length=20_000, description="A private key without passphrase; empty takes it away.")]
        | None
    ) = None


class GitKeyView(Struct, frozen=True, kw_only=True):
    """What may be known of a key."""

    public: str
    fingerprint: str


class GitRemoteView(Struct, frozen=True, kw_only=True):
    remote: str
    url: str
    branch: str
    name: str
    email: str
    known_hosts: list[str]
    key: GitKeyView | None
    stored: bool
    """Whether this was set here; else it is what the repository says itself."""
    repository: bool


class GitKeyBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    replace: Annotated[bool, Meta(description="Whether a key that is there is given up for it.")] = False


class GitTestBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    push: Annotated[bool, Meta(description="Try also whether the remote would take a commit; none is sent.")] = False


KEY = GitKeyView(public="ssh-ed25519 AAAAC3Nza… sylph", fingerprint="SHA256:0Yc… (ED25519)")
EXAMPLE = GitRemoteView(
    remote="origin",
    url="git@git.example:ann/project.git",
    branch="main",
    name="Ann",
    email="ann@example.org",
    known_hosts=["git.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB"],
    key=KEY,
    stored=True,
    repository=True,
)
PATH = "/workspaces/{workspace}/git"


@routes.get(PATH, scope="read", gives=GitRemoteView, errors=(404,), answer=EXAMPLE)
async def get_git_remote(server: ServerState, workspace: str) -> Versioned[GitRemoteView]:
    """Get the settings of the remote. Of the key only its public half is told."""
    return await _describe_remote(server, await _workspace_path(server, workspace))


@routes.put(
    PATH,
    scope="admin",
    gives=GitRemoteView,
    errors=(404, 409, 412),
    example=GitRemoteBody(url="git@git.example:ann/project.git", branch="main", name="Ann", email="ann@example.org"),
    answer=EXAMPLE,
)
async def put_git_remote(
    server: ServerState, workspace: str, body: GitRemoteBody, if_match: Annotated[str, Header(max_length=2000)] = ""
) -> Versioned[GitRemoteView]:
    """Set the remote: in the repository, and for the agent's fetch, pull and push."""
    root, remotes, environ = (
        await _workspace_path(server, workspace),
        build_git_remotes(server.app.config),
        server.app.config.environ,
    )
    check_if_match((await _describe_remote(server, root)).tag, if_match)
    remote = validate_remote(
        GitRemote(
            root=str(root),
            name=body.remote,
            url=body.url.strip(),
            branch=body.branch,
            user=body.name,
            email=body.email,
            known_hosts=tuple(line.strip() for line in body.known_hosts if line.strip()),
        )
    )
    pair = await ssh_keys.derive_public_key(body.key, remotes.secret_folder(), environ) if body.key else None
    await apply_remote(remote, environ)
    await asyncio.to_thread(_store_remote, remotes, remote, pair, forget=body.key == "")
    return await _describe_remote(server, root)


def _store_remote(remotes: GitRemoteStore, remote: GitRemote, pair: tuple[bytes, str] | None, *, forget: bool) -> None:
    if pair:
        remotes.save_key(Path(remote.root), *pair)
    elif forget:
        remotes.delete_key(Path(remote.root))
    remotes.save(remote)


@routes.delete(PATH, scope="admin", status=204, errors=(404,))
async def remove_git_remote(server: ServerState, workspace: str) -> None:
    """Forget the settings and the key. The repository's own remote stays as it is."""
    root = await _workspace_path(server, workspace)
    if not await asyncio.to_thread(build_git_remotes(server.app.config).remove, root):
        raise NotFound("Nothing is set for this workspace.", next=["PUT sets it"])


@routes.post(
    f"{PATH}/key", scope="admin", gives=GitKeyView, status=201, errors=(404, 409), example=GitKeyBody(), answer=KEY
)
async def make_git_key(server: ServerState, workspace: str, body: GitKeyBody) -> GitKeyView:
    """Make a key here, and show its public half for the other side to let in."""
    root, remotes, environ = (
        await _workspace_path(server, workspace),
        build_git_remotes(server.app.config),
        server.app.config.environ,
    )
    if remotes.key_path(root) and not body.replace:
        raise UserError("There is a key already.", kind="exists", next=["give replace=true to make another one"])
    private, public = await ssh_keys.generate_key("sylph", remotes.secret_folder(), environ)
    remote = remotes.load(root) or await asyncio.to_thread(remote_from_repository, root)
    await asyncio.to_thread(_store_remote, remotes, remote, (private, public), forget=False)
    known = await ssh_keys.describe_key(public, environ)
    return GitKeyView(public=public, fingerprint=known.fingerprint if known else "")


@routes.post(f"{PATH}/test", scope="admin", gives=RemoteProbeResult, errors=(404, 409), example=GitTestBody(push=True))
async def test_git_remote(server: ServerState, workspace: str, body: GitTestBody) -> RemoteProbeResult:
    """Try the settings on the remote itself. An unknown host's key is told, to be compared and added."""
    root, remotes = await _workspace_path(server, workspace), build_git_remotes(server.app.config)
    remote = remotes.load(root)
    if remote is None:
        raise UserError("Nothing is set for this workspace.", kind="wrong_state", next=["PUT sets it"])
    return await probe_remote(remotes, remote, server.app.config.environ, push=body.push)


async def _workspace_path(server: ServerState, workspace: str) -> Path:
    return (await find_workspace(server, workspace)).root


async def _describe_remote(server: ServerState, root: Path) -> Versioned[GitRemoteView]:
    remotes = build_git_remotes(server.app.config)
    stored = await asyncio.to_thread(remotes.load, root)
    remote = stored or await asyncio.to_thread(remote_from_repository, root)
    known = await ssh_keys.describe_key(remotes.public_key(root), server.app.config.environ)
    shown = GitRemoteView(
        remote=remote.name,
        url=remote.url,
        branch=remote.branch,
        name=remote.user,
        email=remote.email,
        known_hosts=list(remote.known_hosts),
        key=GitKeyView(public=known.public, fingerprint=known.fingerprint) if known else None,
        stored=stored is not None,
        repository=find_repository(root) is not None,
    )
    return Versioned(shown, hashlib.blake2b(msgspec.json.encode(shown), digest_size=12).hexdigest())
