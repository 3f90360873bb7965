"""A request carried out: judged by what the action does, run under the journaled runner, found again after a crash."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sylph.core.command_run import CommandSpec
from sylph.core.errors import ToolError, UserError
from sylph.core.tool import CallAssessment, ToolContext, ToolResult
from sylph.tools.files.workspace_paths import printable_name, resolve_folder
from sylph.tools.git import argument_checks, output, status
from sylph.tools.git.args import GitArgs
from sylph.tools.git.command_builder import GitCommand, GitRequest, build_command
from sylph.tools.git.git_environment import FIXED_OPTIONS, NO_HOOKS
from sylph.tools.git.repository import find_repository
from sylph.tools.shell.command import LiveOutput

if TYPE_CHECKING:
    from sylph.tools.git.remote.settings import GitRemote, GitRemoteStore
    from sylph.tools.git.remote.ssh_agent import SshEnvironment

OUTWARD = frozenset({"fetch", "pull", "push"})
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


class GitSetup(Struct, frozen=True):
    """What git is run with."""

    program: str
    basis: Mapping[str, str]
    remotes: "GitRemoteStore | None" = None


async def run_request(means: GitSetup, args: GitArgs, context: ToolContext) -> ToolResult:
    scene = _build_request(args, context)
    what = build_command(scene)
    remote = await asyncio.to_thread(_remote_for, means, scene)
    order = _command_spec(means, what, context, scene, remote)
    async with _open_ssh(means, remote, what) as loan:
        if loan:
            order = replace(order, env={**order.env, **loan.env}, lent=loan.folder)
        ran = await context.runner.run(order, _output_filter(what, context))
    return output.build_result(ran, what, scene, _status_mark(context))


def _remote_for(means: GitSetup, scene: GitRequest) -> "GitRemote | None":
    """What the user set for the workspace, or for the repository it lies in."""
    if means.remotes is None:
        return None
    git = scene.repository.folder if scene.repository else None
    return means.remotes.find_nearest(scene.workspace, *((git.parent,) if git and git.name == ".git" else ()))


@asynccontextmanager
async def _open_ssh(
    means: GitSetup, remote: "GitRemote | None", what: GitCommand
) -> "AsyncGenerator[SshEnvironment | None, None]":
    """The key, for a command that goes to the remote it is set for, and for no other."""
    if not (means.remotes and remote and remote.uses_ssh and what.remote in (remote.name, "*")):
        yield None
        return
    from sylph.tools.git.remote.ssh_agent import open_ssh_environment

    try:
        async with open_ssh_environment(means.remotes, remote, means.basis) as loan:
            yield loan
    except UserError as error:
        raise ToolError(str(error), kind=error.trouble.kind, next=["Tell the user."]) from error


async def recover_request(args: GitArgs, context: ToolContext) -> ToolResult | None:
    scene = _build_request(args, context)
    what = build_command(scene)
    ran = await context.runner.attach(_output_filter(what, context))
    return None if ran is None else output.build_result(ran, what, scene, _status_mark(context))


async def preview_request(args: GitArgs, context: ToolContext) -> str:
    scene = _build_request(args, context)
    what = build_command(scene)
    said = f"\n{what.stdin}" if what.stdin else ""
    return f"would run in {printable_name(str(scene.cwd))}:\n{printable_name(what.command_line)}{said}"


def judge_request(args: GitArgs, context: ToolContext) -> CallAssessment:
    try:
        scene = _build_request(args, context)
        what = build_command(scene)
    except ToolError:
        return CallAssessment("external" if args.action in OUTWARD else "write", "caution", "cannot be run like this")
    known = scene.repository.remotes.items() if scene.repository else ()
    addresses = [each for name, urls in known if what.remote in (name, "*") for each in urls]
    return CallAssessment(
        what.effect,
        what.risk,
        what.why,
        reads=what.reads,
        writes=what.writes,
        hosts=tuple(dict.fromkeys(filter(None, map(argument_checks.host_of, addresses)))),
        commands=(what.command_line,),
    )


def _build_request(args: GitArgs, context: ToolContext) -> GitRequest:
    place = resolve_folder(context.workspace, args.cwd)
    return GitRequest(args, context.workspace, place, find_repository(place))


def _command_spec(
    means: GitSetup, what: GitCommand, context: ToolContext, scene: GitRequest, remote: "GitRemote | None"
) -> CommandSpec:
    who = remote.identity_options if remote else ()
    command = (means.program, *FIXED_OPTIONS, *who, *(NO_HOOKS if what.config else ()), *what.argv)
    if any("\0" in word for word in command):
        raise ToolError("A NUL byte is no part of a name.", kind="bad_argument")
    wrapped = what.with_status or what.exclude
    mark = _status_mark(context) if what.with_status else ""
    # Looking must not write, not even what git would like to remember.
    quiet = {"GIT_OPTIONAL_LOCKS": "0"} if what.effect == "read" else {}
    return CommandSpec(
        argv=("/bin/sh", "-c", SCRIPT, "sh", mark, what.exclude, *command) if wrapped else command,
        cwd=str(scene.cwd),
        env={**means.basis, **quiet},
        seconds=context.seconds,
        memory=context.memory,
        title=what.command_line,
        stdin=what.stdin,
        repository=what.config,
    )


def _status_mark(context: ToolContext) -> str:
    """A line that no output has by chance, and that a recovery finds too."""
    return f"sylph:{blake2b(context.idempotency_key.encode(), digest_size=12).hexdigest()}"


def _output_filter(what: GitCommand, context: ToolContext) -> Callable[[bytes], None]:
    """Shows what people read: whole lines, up to the mark."""
    live, mark = LiveOutput(context.output), _status_mark(context).encode()
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
