"""What may be asked of git."""

from typing import Annotated, Literal

from msgspec import Meta

from sylph.core.tool import ToolArgs

GitAction = Literal[
    "status", "diff", "log", "show", "blame", "add", "commit", "branch", "switch", "stash", "merge", "rebase", "tag",
    "fetch", "pull", "push", "remote", "worktree",
]  # fmt: skip
GitStep = Literal[
    "", "list", "show", "create", "delete", "rename", "track", "set_url", "apply", "pop", "rebase", "continue", "skip",
    "abort",
]  # fmt: skip
STEPS = (
    "branch, tag, remote, worktree: list (default), create, delete; branch also rename (ref to name), track (ref); "
    "remote also set_url. switch: create. stash: create (default), list, show, apply, pop, delete. "
    "merge, rebase: continue, abort (rebase also skip). pull: rebase. push: delete."
)


class GitArgs(ToolArgs, frozen=True, kw_only=True):
    action: Annotated[GitAction, Meta(description="What to do.")]
    step: Annotated[GitStep, Meta(description=STEPS)] = ""
    ref: Annotated[str, Meta(description="Commit, branch or range; stash@{1}; for show also REF:path.")] = ""
    name: Annotated[str, Meta(description="Branch, tag or remote that is made, changed or switched to.")] = ""
    paths: Annotated[list[str], Meta(description="Only these files and folders. worktree: its folder.")] = []
    message: Annotated[str, Meta(max_length=100_000, description="For commit, merge, stash, annotated tag.")] = ""
    remote: Annotated[str, Meta(description="For fetch, pull, push; default: the branch's own, else origin.")] = ""
    url: Annotated[str, Meta(description="Of a remote: https, ssh, git, or a folder in the workspace.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="For log: at most so many commits.")] = 20
    lines: Annotated[str, Meta(pattern="^([0-9]+,[0-9]+)?$", description="For blame: first,last line.")] = ""
    staged: Annotated[bool, Meta(description="For diff: what is staged.")] = False
    all: Annotated[
        bool, Meta(description="add, commit: all changes. stash: untracked too. branch, log, fetch: all there are.")
    ] = False
    amend: Annotated[bool, Meta(description="For commit: replace the last one.")] = False
    force: Annotated[
        bool, Meta(description="Delete what is unmerged, discard changes, replace; push: with lease only.")
    ] = False
    cwd: Annotated[str, Meta(description="Folder of the repository or worktree.")] = "."
