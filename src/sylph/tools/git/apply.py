"""A remote's settings put into its repository, where git itself looks for them."""

from collections.abc import Mapping
from pathlib import Path

from sylph.core.errors import UserError
from sylph.tools.git.called import Said, called
from sylph.tools.git.remotes import Remote
from sylph.tools.git.repository import found
from sylph.tools.git.work import FIXED, NO_HOOKS, environment


async def apply(remote: Remote, environ: Mapping[str, str]) -> None:
    """Sets the remote's address, and that its branch follows it. Raises UserError where there is no repository."""
    if not remote.url:
        return
    names = (await _git(remote, environ, "remote")).out.split()
    do = "set-url" if remote.name in names else "add"
    await _git(remote, environ, "remote", do, remote.name, remote.url)
    if remote.branch:
        await _git(remote, environ, "config", f"branch.{remote.branch}.remote", remote.name)
        await _git(remote, environ, "config", f"branch.{remote.branch}.merge", f"refs/heads/{remote.branch}")


def present(root: Path) -> Remote:
    """What the repository says itself, where nothing is set."""
    repository = found(root)
    if repository is None:
        return Remote(root=str(root))
    name = repository.remote
    url = next(iter(repository.remotes.get(name, ())), "")
    return Remote(root=str(root), name=name, url=url, branch=repository.branch)


async def _git(remote: Remote, environ: Mapping[str, str], *words: str) -> Said:
    said = await called(("git", *FIXED, *NO_HOOKS, *words), environment(environ), cwd=Path(remote.root))
    if said.code and "not a git repository" in said.err:
        raise UserError(
            f"{remote.root} is no git repository.", kind="not_a_repository", next=["make one there first: git init"]
        )
    if said.code:
        raise UserError(f"git {words[0]}: {said.err.strip()[:300]}", kind="git_failed", next=["look at what git says"])
    return said
