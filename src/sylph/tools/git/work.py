"""A request carried out: judged by what the action does, run under the journaled runner, found again after a crash."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sylph.core.errors import ToolError, UserError
from sylph.core.run import Order
from sylph.core.tool import Context, Judged, Result
from sylph.tools.git import status, told, words
from sylph.tools.git.args import Git
from sylph.tools.git.plan import Plan, Scene, plan
from sylph.tools.git.repository import found
from sylph.tools.shell import QUIET, Live, clean
from sylph.tools.workspace import folder, printable

if TYPE_CHECKING:
    from sylph.tools.git.loan import Loan
    from sylph.tools.git.remotes import Remote, Remotes

OUTWARD = frozenset({"fetch", "pull", "push"})
# Settings of ours: for every command, whatever the user has configured.
FIXED = (
    *("--no-pager", "--literal-pathspecs"),
    *("-c", "core.quotePath=false", "-c", "color.ui=false", "-c", "core.fsmonitor=false", "-c", "gc.autoDetach=false"),
    *("-c", "submodule.recurse=false", "-c", "protocol.ext.allow=never"),
)
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
# The command; what git is to overlook from now on; and the state of the work tree, after a line that tells them apart.
SCRIPT = f"""
mark=$1 exclude=$2
shift 2
"$@"
code=$?
if [ -n "$exclude" ] && [ $code = 0 ]; then
    kept=$("$1" rev-parse --git-common-dir)/info && mkdir -p "$kept" && printf '%s\\n' "$exclude" >> "$kept/exclude"
fi
if [ -n "$mark" ]; then
    printf '\\n%s\\n' "$mark"
    GIT_OPTIONAL_LOCKS=0 "$1" -c core.fsmonitor=false {" ".join(status.ARGUMENTS)}
fi
exit $code
"""
# Nobody answers a prompt; only machines that the user's ssh knows are trusted; messages in the words we look for.
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "file:git:https:ssh",
    "GIT_ASKPASS": "",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes",
    "GIT_MERGE_AUTOEDIT": "no",
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "C",
}
# What the user may have set for all git commands. The rest (GIT_DIR …) is meant for a command in another place.
KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG", "GIT_SSH", "GIT_SSL", "GIT_EXEC_PATH", "GIT_PROXY")


class Means(Struct, frozen=True):
    """What git is run with."""

    program: str
    basis: Mapping[str, str]
    remotes: "Remotes | None" = None


async def run(means: Means, args: Git, context: Context) -> Result:
    scene = _scene(args, context)
    what = plan(scene)
    remote = await asyncio.to_thread(_set, means, scene)
    order = _order(means, what, context, scene, remote)
    async with _lent(means, remote, what) as loan:
        if loan:
            order = replace(order, env={**order.env, **loan.env}, lent=loan.folder)
        ran = await context.runs.run(order, _shown(what, context))
    return told.result(ran, what, scene, _mark(context))


def _set(means: Means, scene: Scene) -> "Remote | None":
    """What the user set for the workspace, or for the repository it lies in."""
    if means.remotes is None:
        return None
    git = scene.repository.folder if scene.repository else None
    return means.remotes.near(scene.workspace, *((git.parent,) if git and git.name == ".git" else ()))


@asynccontextmanager
async def _lent(means: Means, remote: "Remote | None", what: Plan) -> "AsyncGenerator[Loan | None, None]":
    """The key, for a command that goes to the remote it is set for, and for no other."""
    if not (means.remotes and remote and remote.ssh and what.remote in (remote.name, "*")):
        yield None
        return
    from sylph.tools.git.loan import lent

    try:
        async with lent(means.remotes, remote, means.basis) as loan:
            yield loan
    except UserError as error:
        raise ToolError(str(error), kind=error.trouble.kind, next=["Tell the user."]) from error


async def recover(args: Git, context: Context) -> Result | None:
    scene = _scene(args, context)
    what = plan(scene)
    ran = await context.runs.attach(_shown(what, context))
    return None if ran is None else told.result(ran, what, scene, _mark(context))


async def preview(args: Git, context: Context) -> str:
    scene = _scene(args, context)
    what = plan(scene)
    said = f"\n{what.stdin}" if what.stdin else ""
    return f"would run in {printable(str(scene.place))}:\n{printable(what.line)}{said}"


def judge(args: Git, context: Context) -> Judged:
    try:
        scene = _scene(args, context)
        what = plan(scene)
    except ToolError:
        return Judged("external" if args.action in OUTWARD else "write", "caution", "cannot be run like this")
    known = scene.repository.remotes.items() if scene.repository else ()
    addresses = [each for name, urls in known if what.remote in (name, "*") for each in urls]
    return Judged(
        what.effect,
        what.risk,
        what.why,
        reads=what.reads,
        writes=what.writes,
        hosts=tuple(dict.fromkeys(filter(None, map(words.host, addresses)))),
        commands=(what.line,),
    )


def _scene(args: Git, context: Context) -> Scene:
    place = folder(context.workspace, args.cwd)
    return Scene(args, context.workspace, place, found(place))


def _order(means: Means, what: Plan, context: Context, scene: Scene, remote: "Remote | None") -> Order:
    who = remote.identity if remote else ()
    command = (means.program, *FIXED, *who, *(NO_HOOKS if what.config else ()), *what.argv)
    if any("\0" in word for word in command):
        raise ToolError("A NUL byte is no part of a name.", kind="bad_argument")
    wrapped = what.after or what.exclude
    mark = _mark(context) if what.after else ""
    # Looking must not write, not even what git would like to remember.
    quiet = {"GIT_OPTIONAL_LOCKS": "0"} if what.effect == "read" else {}
    return Order(
        argv=("/bin/sh", "-c", SCRIPT, "sh", mark, what.exclude, *command) if wrapped else command,
        cwd=str(scene.place),
        env={**means.basis, **quiet},
        seconds=context.seconds,
        memory=context.memory,
        title=what.line,
        stdin=what.stdin,
        repository=what.config,
    )


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    usual = {
        name: value
        for name, value in clean(environ).items()
        if (not name.startswith("GIT_") or name.startswith(KEPT)) and name != "SSH_ASKPASS"
    }
    return {
        **QUIET,
        **ENVIRONMENT,
        **usual,
        "GIT_ALLOW_PROTOCOL": ENVIRONMENT["GIT_ALLOW_PROTOCOL"],
        "LC_ALL": "C.UTF-8",
    }


def _mark(context: Context) -> str:
    """A line that no output has by chance, and that a recovery finds too."""
    return f"sylph:{blake2b(context.key.encode(), digest_size=12).hexdigest()}"


def _shown(what: Plan, context: Context) -> Callable[[bytes], None]:
    """Shows what people read: whole lines, up to the mark."""
    live, mark = Live(context.output), _mark(context).encode()
    held, over = bytearray(), what.argv[0] == "status"

    def show(data: bytes) -> None:
        nonlocal over
        held.extend(data)
        *lines, rest = bytes(held).split(b"\n")
        held[:] = rest
        ending = mark in lines
        shown = lines[: lines.index(mark)] if ending else lines
        if shown and not over:
            live.add(b"\n".join(shown) + b"\n")
        over = over or ending

    return show
