"""A remote's settings put into its repository, where git itself looks for them."""

from collections.abc import Mapping
from pathlib import Path

from sylph.core.errors import UserError
from sylph.tools.git.git_environment import FIXED_OPTIONS, NO_HOOKS, git_environment
from sylph.tools.git.git_process import ProgramOutput, run_program
from sylph.tools.git.remote.settings import GitRemote
from sylph.tools.git.repository import find_repository


async def apply_remote(remote: GitRemote, environ: Mapping[str, str]) -> None:
    """Sets the remote's address, and that its branch follows it. Raises UserError where there is no repository."""
    if not remote.url:
        return
    names = (await _run_git(remote, environ, "remote")).out.split()
    do = "set-url" if remote.name in names else "add"
    await _run_git(remote, environ, "remote", do, remote.name, remote.url)
    if remote.branch:
        await _run_git(remote, environ, "config", f"branch.{remote.branch}.remote", remote.name)
        await _run_git(remote, environ, "config", f"branch.{remote.branch}.merge", f"refs/heads/{remote.branch}")


def remote_from_repository(root: Path) -> GitRemote:
    """What the repository says itself, where nothing is set."""
    repository = find_repository(root)
    if repository is None:
        return GitRemote(root=str(root))
    name = repository.default_remote
    url = next(iter(repository.remotes.get(name, ())), "")
    return GitRemote(root=str(root), name=name, url=url, branch=repository.branch)


async def _run_git(remote: GitRemote, environ: Mapping[str, str], *words: str) -> ProgramOutput:
    said = await run_program(
        ("git", *FIXED_OPTIONS, *NO_HOOKS, *words), git_environment(environ), cwd=Path(remote.root)
    )
    if said.code and "not a git repository" in said.err:
        raise UserError(
            f"{remote.root} is no git repository.", kind="not_a_repository", next=["make one there first: git init"]
        )
    if said.code:
        raise UserError(f"git {words[0]}: {said.err.strip()[:300]}", kind="git_failed", next=["look at what git says"])
    return said
