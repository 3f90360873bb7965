"""What is to be run for a request, and what that would do: decided before anything runs, from the arguments alone."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace as _with

from sylph.core.errors import ToolError
from sylph.core.permission.types import Effect, Risk
from sylph.tools.files.workspace_paths import resolve_inside, resolve_writable
from sylph.tools.git import argument_checks, status
from sylph.tools.git.args import GitAction, GitArgs
from sylph.tools.git.repository import GitRepository

SPECIAL = r"[*?\[\]\\!# ]"
LOG = "--format=%h %ad %an%d%n    %s"
# What a program configured by somebody else would make of a file is not what is in it.
PLAIN = ("--no-ext-diff", "--no-textconv", "--patch-with-stat")


class GitCommand(Struct, frozen=True, kw_only=True):
    """One git command."""

    argv: tuple[str, ...]
    effect: Effect = "write"
    risk: Risk = "caution"
    why: str = ""
    stdin: str | None = None
    with_status: bool = False
    """Whether the state of the work tree is told with the result."""
    config: bool = False
    """Whether it writes the repository's config. Then no hook runs: what may be written then is not for them."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    remote: str = ""
    exclude: str = ""
    """What git shall not see as untracked, once this is done."""

    @property
    def command_line(self) -> str:
        """As one would type it."""
        return " ".join(("git", *self.argv))


class GitRequest(Struct, frozen=True):
    """A request, and where it is made."""

    args: GitArgs
    workspace: Path
    cwd: Path
    repository: GitRepository | None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(argument_checks.relative_paths(self.args.paths, self.workspace, self.cwd))

    @property
    def full_paths(self) -> tuple[str, ...]:
        return tuple(argument_checks.full_path(each, self.workspace, self.cwd) for each in self.args.paths)

    @property
    def remote(self) -> str:
        return argument_checks.check_remote(
            self.args.remote or (self.repository.default_remote if self.repository else "origin")
        )

    @property
    def branch(self) -> str:
        return self.repository.branch if self.repository else ""


def build_command(scene: GitRequest) -> GitCommand:
    """Raises ToolError where the arguments make no sense."""
    return BUILDERS[scene.args.action](scene)


def read_only_command(*argv: str, reads: tuple[str, ...] = ()) -> GitCommand:
    return GitCommand(argv=argv, effect="read", risk="safe", why="only looks at the repository", reads=reads)


def _build_status(scene: GitRequest) -> GitCommand:
    return read_only_command(*status.ARGUMENTS, "--", *scene.paths)


def _build_diff(scene: GitRequest) -> GitCommand:
    refs = [argument_checks.check_ref(scene.args.ref)] if scene.args.ref else []
    staged = ["--cached"] if scene.args.staged else []
    return read_only_command("diff", *PLAIN, *staged, *refs, "--", *scene.paths, reads=scene.full_paths)


def _build_log(scene: GitRequest) -> GitCommand:
    which = ["--all"] if scene.args.all else [argument_checks.check_ref(scene.args.ref)] if scene.args.ref else []
    return read_only_command(
        "log", LOG, "--date=short", "--no-show-signature", f"--max-count={scene.args.limit}", *which, "--", *scene.paths
    )


def _build_show(scene: GitRequest) -> GitCommand:
    rev, colon, path = scene.args.ref.partition(":")
    if colon:
        full = argument_checks.full_path(path, scene.workspace, scene.cwd)
        # Like a path in a shell: from the folder one is in, not from the root of the repository.
        (near,) = argument_checks.relative_paths([path], scene.workspace, scene.cwd)
        return read_only_command("show", "--no-textconv", f"{argument_checks.check_ref(rev)}:./{near}", reads=(full,))
    return read_only_command(
        "show",
        *PLAIN,
        "--no-show-signature",
        argument_checks.check_ref(rev or "HEAD"),
        "--",
        *scene.paths,
        reads=scene.full_paths,
    )


def _build_blame(scene: GitRequest) -> GitCommand:
    if len(scene.args.paths) != 1:
        raise ToolError("Blame looks at one file.", kind="bad_argument", next=["Give paths with one file."])
    span = [f"-L{scene.args.lines}"] if scene.args.lines else []
    refs = [argument_checks.check_ref(scene.args.ref)] if scene.args.ref else []
    return read_only_command("blame", "--date=short", *span, *refs, "--", *scene.paths, reads=scene.full_paths)


def _build_add(scene: GitRequest) -> GitCommand:
    if not scene.args.paths and not scene.args.all:
        raise ToolError("There is nothing to add.", kind="bad_argument", next=["Give paths, or all=true."])
    return GitCommand(
        argv=("add", "--all", "--", *(scene.paths or (".",))),
        why="stages changes",
        with_status=True,
        reads=scene.full_paths,
    )


def _build_commit(scene: GitRequest) -> GitCommand:
    args = scene.args
    if not args.message.strip() and not args.amend:
        raise ToolError("A commit needs a message.", kind="bad_argument", next=["Give message."])
    said = ("--file=-",) if args.message.strip() else ("--no-edit",)
    more = ("--amend",) * args.amend + ("--all",) * (args.all and not args.paths)
    why = "replaces the last commit" if args.amend else "makes a commit"
    return GitCommand(
        argv=("commit", *more, *said, "--", *scene.paths),
        why=why,
        stdin=args.message if args.message.strip() else None,
        with_status=True,
    )


def _build_branch(scene: GitRequest) -> GitCommand:
    args = scene.args
    match args.step:
        case "" | "list":
            return read_only_command("branch", "--list", "-vv", *(["--all"] if args.all else []))
        case "create":
            force = ("--force",) * args.force
            start = (argument_checks.check_ref(args.ref),) if args.ref else ()
            return _forceable_command(
                args, ("branch", "--no-track", *force, argument_checks.check_name(args.name), *start), "makes a branch"
            )
        case "delete":
            how = "-D" if args.force else "-d"
            return _forceable_command(
                args, ("branch", how, "--", argument_checks.check_name(args.name)), "deletes a branch", config=True
            )
        case "rename":
            old = (argument_checks.check_name(args.ref),) if args.ref else ()
            how = "-M" if args.force else "-m"
            return _forceable_command(
                args, ("branch", how, *old, argument_checks.check_name(args.name)), "renames a branch", config=True
            )
        case "track":
            name = (argument_checks.check_name(args.name),) if args.name else ()
            argv = ("branch", f"--set-upstream-to={argument_checks.check_ref(args.ref)}", *name)
            return GitCommand(argv=argv, why="sets what a branch follows", config=True)
        case _:
            raise _unknown_step_error(args, "list, create, delete, rename, track")


def _build_switch(scene: GitRequest) -> GitCommand:
    args = scene.args
    force = ("--discard-changes",) * args.force
    if args.step == "create":
        start = (argument_checks.check_ref(args.ref),) if args.ref else ()
        argv = ("switch", *force, "--no-track", "-c", argument_checks.check_name(args.name), *start)
    elif args.step:
        raise _unknown_step_error(args, "create")
    elif args.name:
        argv = ("switch", *force, "--no-guess", argument_checks.check_name(args.name))
    else:
        argv = ("switch", *force, "--detach", argument_checks.check_ref(args.ref))
    plan = _forceable_command(args, argv, "changes files to those of another branch")
    return _add_status(plan)


def _build_stash(scene: GitRequest) -> GitCommand:
    args = scene.args
    match args.step:
        case "" | "create":
            more = ("--include-untracked",) * args.all + (("-m", args.message) if args.message else ())
            argv = ("stash", "push", *more, "--", *scene.paths)
            return _add_status(GitCommand(argv=argv, why="puts changes aside"))
        case "list":
            return read_only_command("stash", "list")
        case "show":
            return read_only_command(
                "stash", "show", "--include-untracked", "--patch-with-stat", argument_checks.stash_ref(args.ref)
            )
        case "apply" | "pop":
            return _add_status(
                GitCommand(argv=("stash", args.step, argument_checks.stash_ref(args.ref)), why="brings changes back")
            )
        case "delete":
            argv = ("stash", "drop", argument_checks.stash_ref(args.ref))
            return GitCommand(argv=argv, risk="dangerous", why="throws away changes that were put aside")
        case _:
            raise _unknown_step_error(args, "create, list, show, apply, pop, delete")


def _build_merge(scene: GitRequest) -> GitCommand:
    args = scene.args
    if args.step in ("continue", "abort"):
        return _add_status(GitCommand(argv=("merge", f"--{args.step}"), why=f"{args.step}s a merge"))
    if args.step:
        raise _unknown_step_error(args, "continue, abort")
    said = ("-m", args.message) if args.message else ()
    return _add_status(
        GitCommand(
            argv=("merge", "--no-edit", *said, argument_checks.check_ref(args.ref)), why="merges into this branch"
        )
    )


def _build_rebase(scene: GitRequest) -> GitCommand:
    args = scene.args
    if args.step in ("continue", "abort", "skip"):
        risk: Risk = "dangerous" if args.step == "skip" else "caution"
        return _add_status(
            GitCommand(argv=("rebase", f"--{args.step}"), risk=risk, why=f"goes on with a rebase: {args.step}")
        )
    if args.step:
        raise _unknown_step_error(args, "continue, abort, skip")
    return _add_status(
        GitCommand(argv=("rebase", argument_checks.check_ref(args.ref)), why="rewrites the commits of this branch")
    )


def _build_tag(scene: GitRequest) -> GitCommand:
    args = scene.args
    match args.step:
        case "" | "list":
            return read_only_command("tag", "--list", "-n1")
        case "create":
            said = ("--annotate", "--file=-") if args.message.strip() else ()
            force = ("--force",) * args.force
            at = (argument_checks.check_ref(args.ref),) if args.ref else ()
            plan = _forceable_command(
                args, ("tag", *force, *said, argument_checks.check_name(args.name), *at), "makes a tag"
            )
            return _with(plan, stdin=args.message) if said else plan
        case "delete":
            return GitCommand(
                argv=("tag", "-d", "--", argument_checks.check_name(args.name)), risk="dangerous", why="deletes a tag"
            )
        case _:
            raise _unknown_step_error(args, "list, create, delete")


def _build_fetch(scene: GitRequest) -> GitCommand:
    if scene.args.all:
        return _network_command(scene, ("fetch", "--all"), "gets commits of every remote", remote="*")
    which = (argument_checks.check_ref(scene.args.ref),) if scene.args.ref else ()
    return _network_command(scene, ("fetch", scene.remote, *which), "gets commits")


def _build_pull(scene: GitRequest) -> GitCommand:
    args = scene.args
    if args.step not in ("", "rebase"):
        raise _unknown_step_error(args, "rebase")
    how = "--rebase" if args.step == "rebase" else "--no-rebase"
    what = argument_checks.check_ref(args.ref or scene.branch, "ref: no branch is checked out, so the one to pull")
    argv = ("pull", how, *(["--no-edit"] if not args.step else []), scene.remote, what)
    return _add_status(_network_command(scene, argv, "gets commits and joins them with this branch"))


def _build_push(scene: GitRequest) -> GitCommand:
    args = scene.args
    what = argument_checks.check_name(args.ref or args.name or scene.branch)
    if args.step == "delete":
        argv = ("push", "--porcelain", "--delete", scene.remote, what)
        return _with(_network_command(scene, argv, "deletes a branch or tag of the remote"), risk="dangerous")
    if args.step:
        raise _unknown_step_error(args, "delete")
    argv = ("push", "--porcelain", *(("--force-with-lease",) * args.force), scene.remote, what)
    plan = _network_command(scene, argv, "sends commits to the remote")
    return _with(plan, risk="dangerous", why="replaces commits of the remote") if args.force else plan


def _build_remote(scene: GitRequest) -> GitCommand:
    args = scene.args
    match args.step:
        case "" | "list":
            return read_only_command("remote", "-v")
        case "create" | "set_url":
            url = argument_checks.check_address(args.url, scene.workspace)
            do = "add" if args.step == "create" else "set-url"
            return GitCommand(
                argv=("remote", do, argument_checks.check_remote(args.name), url), why="sets a remote", config=True
            )
        case "delete":
            return GitCommand(
                argv=("remote", "remove", argument_checks.check_remote(args.name)), why="removes a remote", config=True
            )
        case _:
            raise _unknown_step_error(args, "list, create, delete, set_url")


def _build_worktree(scene: GitRequest) -> GitCommand:
    args = scene.args
    if args.step in ("", "list"):
        return read_only_command("worktree", "list")
    if args.step not in ("create", "delete"):
        raise _unknown_step_error(args, "list, create, delete")
    if len(args.paths) != 1:
        raise ToolError("A worktree is one folder.", kind="bad_argument", next=["Give paths with one folder."])
    folder = str(
        resolve_writable(scene.workspace, str(resolve_inside(scene.workspace, str(scene.cwd / args.paths[0]))))
    )
    force = ("--force",) * args.force
    if args.step == "delete":
        plan = _forceable_command(args, ("worktree", "remove", *force, folder), "removes a worktree")
    else:
        made = (
            ("--no-track", "-b", argument_checks.check_name(args.name)) if args.name else ("--detach",) * (not args.ref)
        )
        at = (argument_checks.check_ref(args.ref),) if args.ref else ()
        plan = _forceable_command(args, ("worktree", "add", *force, *made, folder, *at), "makes a worktree")
        plan = _with(plan, exclude=_exclude_pattern(folder, scene.repository))
    return _with(plan, writes=(folder,))


def _exclude_pattern(folder: str, repository: GitRepository | None) -> str:
    """A worktree inside of another one must not be added to it."""
    top = repository.folder.parent if repository and repository.folder.name == ".git" else None
    if top is None or not Path(folder).is_relative_to(top):
        return ""
    pattern = re.sub(SPECIAL, r"\\\g<0>", os.path.relpath(folder, top))
    return f"/{pattern}/"


def _forceable_command(args: GitArgs, argv: tuple[str, ...], why: str, *, config: bool = False) -> GitCommand:
    risk: Risk = "dangerous" if args.force else "caution"
    return GitCommand(
        argv=argv, risk=risk, why=f"{why}, whatever is lost with it" if args.force else why, config=config
    )


def _network_command(scene: GitRequest, argv: tuple[str, ...], why: str, *, remote: str = "") -> GitCommand:
    return GitCommand(argv=argv, effect="external", why=why, remote=remote or scene.remote)


def _add_status(plan: GitCommand) -> GitCommand:
    return _with(plan, with_status=True)


def _unknown_step_error(args: GitArgs, known: str) -> ToolError:
    return ToolError(
        f"{args.action} has no step {args.step!r}.", kind="bad_argument", next=[f"Steps of {args.action}: {known}."]
    )


BUILDERS: Mapping[GitAction, Callable[[GitRequest], GitCommand]] = {
    "status": _build_status,
    "diff": _build_diff,
    "log": _build_log,
    "show": _build_show,
    "blame": _build_blame,
    "add": _build_add,
    "commit": _build_commit,
    "branch": _build_branch,
    "switch": _build_switch,
    "stash": _build_stash,
    "merge": _build_merge,
    "rebase": _build_rebase,
    "tag": _build_tag,
    "fetch": _build_fetch,
    "pull": _build_pull,
    "push": _build_push,
    "remote": _build_remote,
    "worktree": _build_worktree,
}
