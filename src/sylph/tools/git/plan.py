"""What is to be run for a request, and what that would do: decided before anything runs, from the arguments alone."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace as _with

from sylph.core.errors import ToolError
from sylph.core.facts import Effect, Risk
from sylph.tools.git import status, words
from sylph.tools.git.args import Action, Git
from sylph.tools.git.repository import Repository
from sylph.tools.workspace import changeable, inside

SPECIAL = r"[*?\[\]\\!# ]"
LOG = "--format=%h %ad %an%d%n    %s"
# What a program configured by somebody else would make of a file is not what is in it.
PLAIN = ("--no-ext-diff", "--no-textconv", "--patch-with-stat")


class Plan(Struct, frozen=True, kw_only=True):
    """One git command."""

    argv: tuple[str, ...]
    effect: Effect = "write"
    risk: Risk = "caution"
    why: str = ""
    stdin: str | None = None
    after: bool = False
    """Whether the state of the work tree is told with the result."""
    config: bool = False
    """Whether it writes the repository's config. Then no hook runs: what may be written then is not for them."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    remote: str = ""
    exclude: str = ""
    """What git shall not see as untracked, once this is done."""

    @property
    def line(self) -> str:
        """As one would type it."""
        return " ".join(("git", *self.argv))


class Scene(Struct, frozen=True):
    """A request, and where it is made."""

    args: Git
    workspace: Path
    place: Path
    repository: Repository | None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(words.paths(self.args.paths, self.workspace, self.place))

    @property
    def full(self) -> tuple[str, ...]:
        return tuple(words.path(each, self.workspace, self.place) for each in self.args.paths)

    @property
    def remote(self) -> str:
        return words.remote(self.args.remote or (self.repository.remote if self.repository else "origin"))

    @property
    def branch(self) -> str:
        return self.repository.branch if self.repository else ""


def plan(scene: Scene) -> Plan:
    """Raises ToolError where the arguments make no sense."""
    return PLANS[scene.args.action](scene)


def look(*argv: str, reads: tuple[str, ...] = ()) -> Plan:
    return Plan(argv=argv, effect="read", risk="safe", why="only looks at the repository", reads=reads)


def _status(scene: Scene) -> Plan:
    return look(*status.ARGUMENTS, "--", *scene.paths)


def _diff(scene: Scene) -> Plan:
    refs = [words.ref(scene.args.ref)] if scene.args.ref else []
    staged = ["--cached"] if scene.args.staged else []
    return look("diff", *PLAIN, *staged, *refs, "--", *scene.paths, reads=scene.full)


def _log(scene: Scene) -> Plan:
    which = ["--all"] if scene.args.all else [words.ref(scene.args.ref)] if scene.args.ref else []
    return look(
        "log", LOG, "--date=short", "--no-show-signature", f"--max-count={scene.args.limit}", *which, "--", *scene.paths
    )


def _show(scene: Scene) -> Plan:
    rev, colon, path = scene.args.ref.partition(":")
    if colon:
        full = words.path(path, scene.workspace, scene.place)
        # Like a path in a shell: from the folder one is in, not from the root of the repository.
        (near,) = words.paths([path], scene.workspace, scene.place)
        return look("show", "--no-textconv", f"{words.ref(rev)}:./{near}", reads=(full,))
    return look("show", *PLAIN, "--no-show-signature", words.ref(rev or "HEAD"), "--", *scene.paths, reads=scene.full)


def _blame(scene: Scene) -> Plan:
    if len(scene.args.paths) != 1:
        raise ToolError("Blame looks at one file.", kind="bad_argument", next=["Give paths with one file."])
    span = [f"-L{scene.args.lines}"] if scene.args.lines else []
    refs = [words.ref(scene.args.ref)] if scene.args.ref else []
    return look("blame", "--date=short", *span, *refs, "--", *scene.paths, reads=scene.full)


def _add(scene: Scene) -> Plan:
    if not scene.args.paths and not scene.args.all:
        raise ToolError("There is nothing to add.", kind="bad_argument", next=["Give paths, or all=true."])
    return Plan(
        argv=("add", "--all", "--", *(scene.paths or (".",))),
        why="stages changes",
        after=True,
        reads=scene.full,
    )


def _commit(scene: Scene) -> Plan:
    args = scene.args
    if not args.message.strip() and not args.amend:
        raise ToolError("A commit needs a message.", kind="bad_argument", next=["Give message."])
    said = ("--file=-",) if args.message.strip() else ("--no-edit",)
    more = ("--amend",) * args.amend + ("--all",) * (args.all and not args.paths)
    why = "replaces the last commit" if args.amend else "makes a commit"
    return Plan(
        argv=("commit", *more, *said, "--", *scene.paths),
        why=why,
        stdin=args.message if args.message.strip() else None,
        after=True,
    )


def _branch(scene: Scene) -> Plan:
    args = scene.args
    match args.step:
        case "" | "list":
            return look("branch", "--list", "-vv", *(["--all"] if args.all else []))
        case "create":
            force = ("--force",) * args.force
            start = (words.ref(args.ref),) if args.ref else ()
            return _risky(args, ("branch", "--no-track", *force, words.name(args.name), *start), "makes a branch")
        case "delete":
            how = "-D" if args.force else "-d"
            return _risky(args, ("branch", how, "--", words.name(args.name)), "deletes a branch", config=True)
        case "rename":
            old = (words.name(args.ref),) if args.ref else ()
            how = "-M" if args.force else "-m"
            return _risky(args, ("branch", how, *old, words.name(args.name)), "renames a branch", config=True)
        case "track":
            name = (words.name(args.name),) if args.name else ()
            argv = ("branch", f"--set-upstream-to={words.ref(args.ref)}", *name)
            return Plan(argv=argv, why="sets what a branch follows", config=True)
        case _:
            raise _no_step(args, "list, create, delete, rename, track")


def _switch(scene: Scene) -> Plan:
    args = scene.args
    force = ("--discard-changes",) * args.force
    if args.step == "create":
        start = (words.ref(args.ref),) if args.ref else ()
        argv = ("switch", *force, "--no-track", "-c", words.name(args.name), *start)
    elif args.step:
        raise _no_step(args, "create")
    elif args.name:
        argv = ("switch", *force, "--no-guess", words.name(args.name))
    else:
        argv = ("switch", *force, "--detach", words.ref(args.ref))
    plan = _risky(args, argv, "changes files to those of another branch")
    return _after(plan)


def _stash(scene: Scene) -> Plan:
    args = scene.args
    match args.step:
        case "" | "create":
            more = ("--include-untracked",) * args.all + (("-m", args.message) if args.message else ())
            argv = ("stash", "push", *more, "--", *scene.paths)
            return _after(Plan(argv=argv, why="puts changes aside"))
        case "list":
            return look("stash", "list")
        case "show":
            return look("stash", "show", "--include-untracked", "--patch-with-stat", words.stash(args.ref))
        case "apply" | "pop":
            return _after(Plan(argv=("stash", args.step, words.stash(args.ref)), why="brings changes back"))
        case "delete":
            argv = ("stash", "drop", words.stash(args.ref))
            return Plan(argv=argv, risk="dangerous", why="throws away changes that were put aside")
        case _:
            raise _no_step(args, "create, list, show, apply, pop, delete")


def _merge(scene: Scene) -> Plan:
    args = scene.args
    if args.step in ("continue", "abort"):
        return _after(Plan(argv=("merge", f"--{args.step}"), why=f"{args.step}s a merge"))
    if args.step:
        raise _no_step(args, "continue, abort")
    said = ("-m", args.message) if args.message else ()
    return _after(Plan(argv=("merge", "--no-edit", *said, words.ref(args.ref)), why="merges into this branch"))


def _rebase(scene: Scene) -> Plan:
    args = scene.args
    if args.step in ("continue", "abort", "skip"):
        risk: Risk = "dangerous" if args.step == "skip" else "caution"
        return _after(Plan(argv=("rebase", f"--{args.step}"), risk=risk, why=f"goes on with a rebase: {args.step}"))
    if args.step:
        raise _no_step(args, "continue, abort, skip")
    return _after(Plan(argv=("rebase", words.ref(args.ref)), why="rewrites the commits of this branch"))


def _tag(scene: Scene) -> Plan:
    args = scene.args
    match args.step:
        case "" | "list":
            return look("tag", "--list", "-n1")
        case "create":
            said = ("--annotate", "--file=-") if args.message.strip() else ()
            force = ("--force",) * args.force
            at = (words.ref(args.ref),) if args.ref else ()
            plan = _risky(args, ("tag", *force, *said, words.name(args.name), *at), "makes a tag")
            return _with(plan, stdin=args.message) if said else plan
        case "delete":
            return Plan(argv=("tag", "-d", "--", words.name(args.name)), risk="dangerous", why="deletes a tag")
        case _:
            raise _no_step(args, "list, create, delete")


def _fetch(scene: Scene) -> Plan:
    if scene.args.all:
        return _outward(scene, ("fetch", "--all"), "gets commits of every remote", remote="*")
    which = (words.ref(scene.args.ref),) if scene.args.ref else ()
    return _outward(scene, ("fetch", scene.remote, *which), "gets commits")


def _pull(scene: Scene) -> Plan:
    args = scene.args
    if args.step not in ("", "rebase"):
        raise _no_step(args, "rebase")
    how = "--rebase" if args.step == "rebase" else "--no-rebase"
    what = words.ref(args.ref or scene.branch, "ref: no branch is checked out, so the one to pull")
    argv = ("pull", how, *(["--no-edit"] if not args.step else []), scene.remote, what)
    return _after(_outward(scene, argv, "gets commits and joins them with this branch"))


def _push(scene: Scene) -> Plan:
    args = scene.args
    what = words.name(args.ref or args.name or scene.branch)
    if args.step == "delete":
        argv = ("push", "--porcelain", "--delete", scene.remote, what)
        return _with(_outward(scene, argv, "deletes a branch or tag of the remote"), risk="dangerous")
    if args.step:
        raise _no_step(args, "delete")
    argv = ("push", "--porcelain", *(("--force-with-lease",) * args.force), scene.remote, what)
    plan = _outward(scene, argv, "sends commits to the remote")
    return _with(plan, risk="dangerous", why="replaces commits of the remote") if args.force else plan


def _remote(scene: Scene) -> Plan:
    args = scene.args
    match args.step:
        case "" | "list":
            return look("remote", "-v")
        case "create" | "set_url":
            url = words.address(args.url, scene.workspace)
            do = "add" if args.step == "create" else "set-url"
            return Plan(argv=("remote", do, words.remote(args.name), url), why="sets a remote", config=True)
        case "delete":
            return Plan(argv=("remote", "remove", words.remote(args.name)), why="removes a remote", config=True)
        case _:
            raise _no_step(args, "list, create, delete, set_url")


def _worktree(scene: Scene) -> Plan:
    args = scene.args
    if args.step in ("", "list"):
        return look("worktree", "list")
    if args.step not in ("create", "delete"):
        raise _no_step(args, "list, create, delete")
    if len(args.paths) != 1:
        raise ToolError("A worktree is one folder.", kind="bad_argument", next=["Give paths with one folder."])
    folder = str(changeable(scene.workspace, str(inside(scene.workspace, str(scene.place / args.paths[0])))))
    force = ("--force",) * args.force
    if args.step == "delete":
        plan = _risky(args, ("worktree", "remove", *force, folder), "removes a worktree")
    else:
        made = ("--no-track", "-b", words.name(args.name)) if args.name else ("--detach",) * (not args.ref)
        at = (words.ref(args.ref),) if args.ref else ()
        plan = _risky(args, ("worktree", "add", *force, *made, folder, *at), "makes a worktree")
        plan = _with(plan, exclude=_excluded(folder, scene.repository))
    return _with(plan, writes=(folder,))


def _excluded(folder: str, repository: Repository | None) -> str:
    """A worktree inside of another one must not be added to it."""
    top = repository.folder.parent if repository and repository.folder.name == ".git" else None
    if top is None or not Path(folder).is_relative_to(top):
        return ""
    pattern = re.sub(SPECIAL, r"\\\g<0>", os.path.relpath(folder, top))
    return f"/{pattern}/"


def _risky(args: Git, argv: tuple[str, ...], why: str, *, config: bool = False) -> Plan:
    risk: Risk = "dangerous" if args.force else "caution"
    return Plan(argv=argv, risk=risk, why=f"{why}, whatever is lost with it" if args.force else why, config=config)


def _outward(scene: Scene, argv: tuple[str, ...], why: str, *, remote: str = "") -> Plan:
    return Plan(argv=argv, effect="external", why=why, remote=remote or scene.remote)


def _after(plan: Plan) -> Plan:
    return _with(plan, after=True)


def _no_step(args: Git, known: str) -> ToolError:
    return ToolError(
        f"{args.action} has no step {args.step!r}.", kind="bad_argument", next=[f"Steps of {args.action}: {known}."]
    )


PLANS: Mapping[Action, Callable[[Scene], Plan]] = {
    "status": _status,
    "diff": _diff,
    "log": _log,
    "show": _show,
    "blame": _blame,
    "add": _add,
    "commit": _commit,
    "branch": _branch,
    "switch": _switch,
    "stash": _stash,
    "merge": _merge,
    "rebase": _rebase,
    "tag": _tag,
    "fetch": _fetch,
    "pull": _pull,
    "push": _push,
    "remote": _remote,
    "worktree": _worktree,
}
