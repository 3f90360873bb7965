"""The git repository a workspace belongs to: what of it commands may change, and what would run outside later."""

import os
from collections.abc import Iterator

# Who can write these decides what git does the next time the user calls it.
GIT_CONFIG_FILES = ("config", "config.worktree")
HOOKS = "hooks"


def repository_mounts(workspace: str, home: str, *, settings: bool) -> Iterator[tuple[str, str]]:
    """Options for the repository's own folder: to be written but for its hooks, and its settings unless wanted.

    The folder itself is mounted too: what is a mount cannot be renamed, and put a copy in its place.
    """
    for folder in _git_folders(workspace, home):
        yield "--bind-fd", folder
        hooks = f"{folder}/{HOOKS}"
        if not os.path.lexists(hooks) and os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/refs"):
            # An empty one, so that there is something to protect.
            os.mkdir(hooks)
        yield "--ro-bind-fd", hooks
        if not settings:
            yield from (
                ("--ro-bind-fd", f"{folder}/{name}") for name in GIT_CONFIG_FILES if os.path.exists(f"{folder}/{name}")
            )


def _git_folders(workspace: str, home: str) -> list[str]:
    top = workspace
    while not os.path.lexists(f"{top}/.git"):
        above = os.path.dirname(top)
        # A repository of the whole home folder is none of a project's business.
        if above in (top, "/", home) or top == home:
            return []
        top = above
    git = f"{top}/.git"
    if os.path.islink(git):
        return []
    return [git] if os.path.isdir(git) else _worktree_folders(git)


def _worktree_folders(file: str) -> list[str]:
    """The folders of a worktree, which lie in the repository it was made from.

    They are believed only if they point back: else a file in the workspace could name any folder.
    """
    own = _read_line(file).removeprefix("gitdir: ")
    if not own:
        return []
    own = os.path.realpath(os.path.join(os.path.dirname(file), own))
    common = os.path.realpath(os.path.join(own, _read_line(f"{own}/commondir") or "."))
    if (
        os.path.realpath(_read_line(f"{own}/gitdir")) != os.path.realpath(file)
        or os.path.dirname(own) != f"{common}/worktrees"
    ):
        return []
    return [common]


def _read_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline(4096).strip()
    except (OSError, ValueError):
        return ""
