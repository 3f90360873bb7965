"""The git remote of a workspace: where its commits go, as whom, with which key. The key goes in and never comes out."""

import asyncio
import hashlib
from pathlib import Path
from typing import Annotated

import msgspec
from fastapi import Header
from msgspec import Meta, Struct

from sylph.core.errors import NotFound, UserError
from sylph.interfaces.http.files.workspaces import ground
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes, Versioned, unchanged
from sylph.tools.git import sshkeys
from sylph.tools.git.apply import apply, present
from sylph.tools.git.checks import checked
from sylph.tools.git.remotes import Remote, Remotes
from sylph.tools.git.repository import found
from sylph.tools.git.trial import Tried, tried
from sylph.wiring import remotes_of

routes = Routes("git remote")
Text = Annotated[str, Meta(max_length=200)]


class GitBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class KeyView(Struct, frozen=True, kw_only=True):
    """What may be known of a key."""

    public: str
    fingerprint: str


class GitView(Struct, frozen=True, kw_only=True):
    remote: str
    url: str
    branch: str
    name: str
    email: str
    known_hosts: list[str]
    key: KeyView | None
    stored: bool
    """Whether this was set here; else it is what the repository says itself."""
    repository: bool


class GitKeyBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    replace: Annotated[bool, Meta(description="Whether a key that is there is given up for it.")] = False


class TryBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    push: Annotated[bool, Meta(description="Try also whether the remote would take a commit; none is sent.")] = False


KEY = KeyView(public="ssh-ed25519 AAAAC3Nza… sylph", fingerprint="SHA256:0Yc… (ED25519)")
EXAMPLE = GitView(
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


@routes.get(PATH, scope="read", gives=GitView, errors=(404,), answer=EXAMPLE)
async def get(house: House, workspace: str) -> Versioned[GitView]:
    """Get the settings of the remote. Of the key only its public half is told."""
    return await _shown(house, await _root(house, workspace))


@routes.put(
    PATH,
    scope="admin",
    gives=GitView,
    errors=(404, 409, 412),
    example=GitBody(url="git@git.example:ann/project.git", branch="main", name="Ann", email="ann@example.org"),
    answer=EXAMPLE,
)
async def put(
    house: House, workspace: str, body: GitBody, if_match: Annotated[str, Header(max_length=2000)] = ""
) -> Versioned[GitView]:
    """Set the remote: in the repository, and for the agent's fetch, pull and push."""
    root, remotes, environ = await _root(house, workspace), remotes_of(house.app.config), house.app.config.environ
    unchanged((await _shown(house, root)).tag, if_match)
    remote = checked(
        Remote(
            root=str(root),
            name=body.remote,
            url=body.url.strip(),
            branch=body.branch,
            user=body.name,
            email=body.email,
            known_hosts=tuple(line.strip() for line in body.known_hosts if line.strip()),
        )
    )
    pair = await sshkeys.public_of(body.key, remotes.scratch(), environ) if body.key else None
    await apply(remote, environ)
    await asyncio.to_thread(_keep, remotes, remote, pair, forget=body.key == "")
    return await _shown(house, root)


def _keep(remotes: Remotes, remote: Remote, pair: tuple[bytes, str] | None, *, forget: bool) -> None:
    if pair:
        remotes.keep_key(Path(remote.root), *pair)
    elif forget:
        remotes.forget_key(Path(remote.root))
    remotes.keep(remote)


@routes.delete(PATH, scope="admin", status=204, errors=(404,))
async def remove(house: House, workspace: str) -> None:
    """Forget the settings and the key. The repository's own remote stays as it is."""
    root = await _root(house, workspace)
    if not await asyncio.to_thread(remotes_of(house.app.config).remove, root):
        raise NotFound("Nothing is set for this workspace.", next=["PUT sets it"])


@routes.post(
    f"{PATH}/key", scope="admin", gives=KeyView, status=201, errors=(404, 409), example=GitKeyBody(), answer=KEY
)
async def make_key(house: House, workspace: str, body: GitKeyBody) -> KeyView:
    """Make a key here, and show its public half for the other side to let in."""
    root, remotes, environ = await _root(house, workspace), remotes_of(house.app.config), house.app.config.environ
    if remotes.key(root) and not body.replace:
        raise UserError("There is a key already.", kind="exists", next=["give replace=true to make another one"])
    private, public = await sshkeys.make("sylph", remotes.scratch(), environ)
    remote = remotes.of(root) or await asyncio.to_thread(present, root)
    await asyncio.to_thread(_keep, remotes, remote, (private, public), forget=False)
    known = await sshkeys.known(public, environ)
    return KeyView(public=public, fingerprint=known.fingerprint if known else "")


@routes.post(f"{PATH}/test", scope="admin", gives=Tried, errors=(404, 409), example=TryBody(push=True))
async def test(house: House, workspace: str, body: TryBody) -> Tried:
    """Try the settings on the remote itself. An unknown host's key is told, to be compared and added."""
    root, remotes = await _root(house, workspace), remotes_of(house.app.config)
    remote = remotes.of(root)
    if remote is None:
        raise UserError("Nothing is set for this workspace.", kind="wrong_state", next=["PUT sets it"])
    return await tried(remotes, remote, house.app.config.environ, push=body.push)


async def _root(house: House, workspace: str) -> Path:
    return (await ground(house, workspace)).root


async def _shown(house: House, root: Path) -> Versioned[GitView]:
    remotes = remotes_of(house.app.config)
    stored = await asyncio.to_thread(remotes.of, root)
    remote = stored or await asyncio.to_thread(present, root)
    known = await sshkeys.known(remotes.public(root), house.app.config.environ)
    shown = GitView(
        remote=remote.name,
        url=remote.url,
        branch=remote.branch,
        name=remote.user,
        email=remote.email,
        known_hosts=list(remote.known_hosts),
        key=KeyView(public=known.public, fingerprint=known.fingerprint) if known else None,
        stored=stored is not None,
        repository=found(root) is not None,
    )
    return Versioned(shown, hashlib.blake2b(msgspec.json.encode(shown), digest_size=12).hexdigest())
