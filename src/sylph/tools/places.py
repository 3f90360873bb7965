"""Moving, copying, removing and making files and folders."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from sylph.core.errors import ToolError, Unknown
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools import atomic, changeset, relocate
from sylph.tools.workspace import STAY, changeable, changes, entry, inside, refusable, reported, shown

TRASH = "trash:"
Name = Annotated[str, Meta(min_length=1)]


class Move(Args, frozen=True, kw_only=True):
    path: Annotated[
        str, Meta(min_length=1, description="File or folder, or trash:CALL to bring back what was deleted.")
    ]
    to: Annotated[str, Meta(min_length=1, description="Its new path; must be free.")]


class Copy(Args, frozen=True, kw_only=True):
    path: Name
    to: Annotated[str, Meta(min_length=1, description="Path of the copy; must be free.")]


class Delete(Args, frozen=True, kw_only=True):
    path: Name


class Make(Args, frozen=True, kw_only=True):
    path: Name


async def move(args: Move, context: Context) -> Result:
    return await asyncio.to_thread(_move, args, context)


def _move(args: Move, context: Context) -> Result:
    source, target = _ends(args, context)
    with reported(args.path):
        relocate.move(source, target, context.key)
    return Result(text=f"Moved {args.path} to {shown(context.workspace, target)}.")


async def foresee_move(args: Move, context: Context) -> Mapping[str, str]:
    source, _ = await asyncio.to_thread(_ends, args, context)
    return {"was": relocate.identity(source)}


async def recover_move(args: Move, context: Context) -> Result | None:
    back = args.path.startswith(TRASH)
    source = _trashed(context, args.path.removeprefix(TRASH)) if back else entry(context.workspace, args.path)
    target = entry(context.workspace, args.to)
    return await asyncio.to_thread(_found_again, source, target, args.path, context)


def _found_again(source: Path, target: Path, name: str, context: Context) -> Result | None:
    was = context.foreseen.get("was", "")
    done = relocate.moved(source, target, was, context.key) if was else None
    if done is None:
        raise Unknown(
            f"Sylph was stopped while it moved {name}. It is not where it was, and not where it was to be.",
            details={"from": relocate.identity(source) or "nothing", "to": relocate.identity(target) or "nothing"},
            next=["Look for it with find."],
        )
    return Result(text=f"{name} was moved before Sylph was interrupted.") if done else None


def _ends(args: Move, context: Context) -> tuple[Path, Path]:
    source, target = _source(args, context), entry(context.workspace, args.to)
    with reported(args.path):
        source.lstat()
    _free(args.to, source, target, context.workspace)
    return source, target


def _source(args: Move, context: Context) -> Path:
    if not args.path.startswith(TRASH):
        return entry(context.workspace, args.path)
    call = args.path.removeprefix(TRASH)
    place = _trashed(context, call)
    if not call.replace("_", "").isalnum() or not os.path.lexists(place):
        raise ToolError(f"Nothing of a call {call} is in the trash of this session.", kind="not_found")
    return place


def _free(name: str, source: Path, target: Path, root: Path) -> None:
    if source == target or target.is_relative_to(source):
        raise ToolError(f"It cannot go to {name}: that is itself, or lies inside it.", kind="bad_path", next=[STAY])
    # On some file systems A.txt is a.txt; then it is not in its own way.
    same = target.name.casefold() == source.name.casefold() and target.exists() and target.samefile(source)
    if os.path.lexists(target) and not same:
        hint = f"{shown(root, target / source.name)} would put it inside." if target.is_dir() else "Delete it first."
        raise ToolError(f"{name} exists already.", kind="exists", next=[hint, "Choose another name."])


async def preview_move(args: Move, context: Context) -> str:
    source, target = await asyncio.to_thread(_ends, args, context)
    load = await asyncio.to_thread(relocate.measure, source, args.path)
    return f"would move {args.path} ({load}) to {shown(context.workspace, target)}"


def judge_move(args: Move, context: Context) -> Judged:
    try:
        source = () if args.path.startswith(TRASH) else (entry(context.workspace, args.path),)
        target = entry(context.workspace, args.to)
    except ToolError as error:
        return refusable(error, context.workspace, args.path, args.to)
    return changes(f"moves {args.path} to {shown(context.workspace, target)}", *source, target)


async def copy(args: Copy, context: Context) -> Result:
    return await asyncio.to_thread(_copy, args, context)


def _copy(args: Copy, context: Context) -> Result:
    source, target, load = _copied(args, context)
    with reported(args.path):
        relocate.copy(source, target, context.key)
    return Result(text=f"Copied {args.path} to {shown(context.workspace, target)}: {load}.")


def _copied(args: Copy, context: Context) -> tuple[Path, Path, relocate.Load]:
    source, target = inside(context.workspace, args.path), entry(context.workspace, args.to)
    with reported(args.path):
        load = relocate.measure(source, args.path, bounded=True)
    _free(args.to, source, target, context.workspace)
    return source, target, load


async def foresee_copy(args: Copy, context: Context) -> Mapping[str, str]:
    source, _, load = await asyncio.to_thread(_copied, args, context)
    mark = await asyncio.to_thread(changeset.fingerprint, source) if source.is_file() else str(load)
    return {"content": mark}


async def recover_copy(args: Copy, context: Context) -> Result | None:
    return await asyncio.to_thread(_recover_copy, args, context)


def _recover_copy(args: Copy, context: Context) -> Result | None:
    """The copy appears by one rename, and its place was free: what is there with this content is the copy."""
    target = entry(context.workspace, args.to)
    relocate.remove(atomic.draft_of(target, context.key))
    if not os.path.lexists(target):
        return None
    found = changeset.fingerprint(target) if target.is_file() else str(relocate.measure(target, args.to))
    if found == context.foreseen.get("content"):
        return Result(text=f"{args.path} was copied to {args.to} before Sylph was interrupted.")
    raise Unknown(
        f"Sylph was stopped while it copied {args.path}. Something else is at {args.to} now.",
        details={"now": found, **context.foreseen},
        next=["Look at it and decide what is left to do."],
    )


async def preview_copy(args: Copy, context: Context) -> str:
    _, target, load = await asyncio.to_thread(_copied, args, context)
    return f"would copy {args.path} ({load}) to {shown(context.workspace, target)}"


def judge_copy(args: Copy, context: Context) -> Judged:
    try:
        source, target = inside(context.workspace, args.path), entry(context.workspace, args.to)
    except ToolError as error:
        return refusable(error, context.workspace, args.to)
    return changes(f"copies {args.path} to {shown(context.workspace, target)}", target, reads=(source,))


async def delete(args: Delete, context: Context) -> Result:
    return await asyncio.to_thread(_delete, args, context)


def _delete(args: Delete, context: Context) -> Result:
    path, load = _doomed(args, context)
    place = _trashed(context, context.call)
    with reported(args.path):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        origin = {"path": shown(context.workspace, path), "workspace": str(context.workspace), "call": context.call}
        place.with_name("origin.json").write_bytes(msgspec.json.encode(origin))
        relocate.move(path, place, context.key)
    return Result(
        text=f"Deleted {args.path} ({load}). It is kept in the session's trash; to bring it back: "
        f'move path="{TRASH}{context.call}" to="{shown(context.workspace, path)}"'
    )


def _doomed(args: Delete, context: Context) -> tuple[Path, relocate.Load]:
    path = entry(context.workspace, args.path)
    with reported(args.path):
        return path, relocate.measure(path, args.path)


def _trashed(context: Context, call: str) -> Path:
    return context.private / "trash" / call / "item"


async def foresee_delete(args: Delete, context: Context) -> Mapping[str, str]:
    path, _ = await asyncio.to_thread(_doomed, args, context)
    return {"was": relocate.identity(path)}


async def recover_delete(args: Delete, context: Context) -> Result | None:
    path, place = entry(context.workspace, args.path), _trashed(context, context.call)
    return await asyncio.to_thread(_found_again, path, place, args.path, context)


async def preview_delete(args: Delete, context: Context) -> str:
    _, load = await asyncio.to_thread(_doomed, args, context)
    return f"would delete {args.path} ({load}); it can be brought back from the session's trash"


def judge_delete(args: Delete, context: Context) -> Judged:
    try:
        path = entry(context.workspace, args.path)
    except ToolError as error:
        return refusable(error, context.workspace, args.path)
    return changes(f"deletes {shown(context.workspace, path)}", path, risk="caution")


async def make(args: Make, context: Context) -> Result:
    path = changeable(context.workspace, args.path)
    with reported(args.path):
        if path.is_dir():
            return Result(text=f"{args.path} is there already.")
        if path.exists():
            hint = ["Choose another name, or move the file away first."]
            raise ToolError(f"{args.path} exists already, and is no folder.", kind="exists", next=hint)
        path.mkdir(parents=True)
    return Result(text=f"Made {shown(context.workspace, path)}/.")


async def preview_make(args: Make, context: Context) -> str:
    return f"would make {shown(context.workspace, changeable(context.workspace, args.path))}/"


async def recover_make(args: Make, context: Context) -> Result | None:
    """Making a folder that is there already does no harm."""
    return None if not changeable(context.workspace, args.path).is_dir() else Result(text=f"{args.path} is there.")


def judge_make(args: Make, context: Context) -> Judged:
    try:
        path = changeable(context.workspace, args.path)
    except ToolError as error:
        return refusable(error, context.workspace, args.path)
    return changes(f"makes {shown(context.workspace, path)}/", path)


MOVE = Tool(
    name="move",
    description="Move or rename a file or folder.",
    args=Move,
    run=move,
    effect="write",
    recourse="by_content",
    preview=preview_move,
    judge=judge_move,
    foresee=foresee_move,
    recover=recover_move,
)
COPY = Tool(
    name="copy",
    description="Copy a file or folder.",
    args=Copy,
    run=copy,
    effect="write",
    recourse="by_content",
    preview=preview_copy,
    judge=judge_copy,
    foresee=foresee_copy,
    recover=recover_copy,
)
DELETE = Tool(
    name="delete",
    description="Delete a file or folder; it can be brought back.",
    args=Delete,
    run=delete,
    effect="write",
    risk="caution",
    recourse="by_content",
    preview=preview_delete,
    judge=judge_delete,
    foresee=foresee_delete,
    recover=recover_delete,
)
MAKE = Tool(
    name="create_directory",
    description="Make a folder, and those above it.",
    args=Make,
    run=make,
    effect="write",
    recourse="by_content",
    preview=preview_make,
    judge=judge_make,
    recover=recover_make,
)
