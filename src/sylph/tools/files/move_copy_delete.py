"""Moving, copying, removing and making files and folders."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from sylph.core.errors import OutcomeUnknown, ToolError
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files import atomic_write, relocate
from sylph.tools.files.edit import changeset
from sylph.tools.files.workspace_paths import (
    INSIDE_HINT,
    assess_refusal,
    assess_write,
    display_path,
    resolve_entry,
    resolve_inside,
    resolve_writable,
    translate_os_errors,
)

TRASH_PREFIX = "trash:"
Name = Annotated[str, Meta(min_length=1)]


class MoveArgs(ToolArgs, frozen=True, kw_only=True):
    path: Annotated[
        str, Meta(min_length=1, description="File or folder, or trash:CALL to bring back what was deleted.")
    ]
    to: Annotated[str, Meta(min_length=1, description="Its new path; must be free.")]


class CopyArgs(ToolArgs, frozen=True, kw_only=True):
    path: Name
    to: Annotated[str, Meta(min_length=1, description="Path of the copy; must be free.")]


class DeleteArgs(ToolArgs, frozen=True, kw_only=True):
    path: Name


class CreateDirectoryArgs(ToolArgs, frozen=True, kw_only=True):
    path: Name


async def move_path(args: MoveArgs, context: ToolContext) -> ToolResult:
    return await asyncio.to_thread(_perform_move, args, context)


def _perform_move(args: MoveArgs, context: ToolContext) -> ToolResult:
    source, target = _move_endpoints(args, context)
    with translate_os_errors(args.path):
        relocate.move_path(source, target, context.idempotency_key)
    return ToolResult(text=f"Moved {args.path} to {display_path(context.workspace, target)}.")


async def foresee_move(args: MoveArgs, context: ToolContext) -> Mapping[str, str]:
    source, _ = await asyncio.to_thread(_move_endpoints, args, context)
    return {"was": relocate.file_identity(source)}


async def recover_move(args: MoveArgs, context: ToolContext) -> ToolResult | None:
    back = args.path.startswith(TRASH_PREFIX)
    source = (
        _trash_path(context, args.path.removeprefix(TRASH_PREFIX))
        if back
        else resolve_entry(context.workspace, args.path)
    )
    target = resolve_entry(context.workspace, args.to)
    return await asyncio.to_thread(_find_moved, source, target, args.path, context)


def _find_moved(source: Path, target: Path, name: str, context: ToolContext) -> ToolResult | None:
    was = context.foreseen.get("was", "")
    done = relocate.recover_move(source, target, was, context.idempotency_key) if was else None
    if done is None:
        raise OutcomeUnknown(
            f"Sylph was stopped while it moved {name}. It is not where it was, and not where it was to be.",
            details={
                "from": relocate.file_identity(source) or "nothing",
                "to": relocate.file_identity(target) or "nothing",
            },
            next=["Look for it with find."],
        )
    return ToolResult(text=f"{name} was moved before Sylph was interrupted.") if done else None


def _move_endpoints(args: MoveArgs, context: ToolContext) -> tuple[Path, Path]:
    source, target = _resolve_source(args, context), resolve_entry(context.workspace, args.to)
    with translate_os_errors(args.path):
        source.lstat()
    _check_free(args.to, source, target, context.workspace)
    return source, target


def _resolve_source(args: MoveArgs, context: ToolContext) -> Path:
    if not args.path.startswith(TRASH_PREFIX):
        return resolve_entry(context.workspace, args.path)
    call = args.path.removeprefix(TRASH_PREFIX)
    place = _trash_path(context, call)
    if not call.replace("_", "").isalnum() or not os.path.lexists(place):
        raise ToolError(f"Nothing of a call {call} is in the trash of this session.", kind="not_found")
    return place


def _check_free(name: str, source: Path, target: Path, root: Path) -> None:
    if source == target or target.is_relative_to(source):
        raise ToolError(
            f"It cannot go to {name}: that is itself, or lies inside it.", kind="bad_path", next=[INSIDE_HINT]
        )
    # On some file systems A.txt is a.txt; then it is not in its own way.
    same = target.name.casefold() == source.name.casefold() and target.exists() and target.samefile(source)
    if os.path.lexists(target) and not same:
        hint = (
            f"{display_path(root, target / source.name)} would put it inside."
            if target.is_dir()
            else "Delete it first."
        )
        raise ToolError(f"{name} exists already.", kind="exists", next=[hint, "Choose another name."])


async def preview_move(args: MoveArgs, context: ToolContext) -> str:
    source, target = await asyncio.to_thread(_move_endpoints, args, context)
    load = await asyncio.to_thread(relocate.measure_size, source, args.path)
    return f"would move {args.path} ({load}) to {display_path(context.workspace, target)}"


def judge_move(args: MoveArgs, context: ToolContext) -> CallAssessment:
    try:
        source = () if args.path.startswith(TRASH_PREFIX) else (resolve_entry(context.workspace, args.path),)
        target = resolve_entry(context.workspace, args.to)
    except ToolError as error:
        return assess_refusal(error, context.workspace, args.path, args.to)
    return assess_write(f"moves {args.path} to {display_path(context.workspace, target)}", *source, target)


async def copy_path(args: CopyArgs, context: ToolContext) -> ToolResult:
    return await asyncio.to_thread(_perform_copy, args, context)


def _perform_copy(args: CopyArgs, context: ToolContext) -> ToolResult:
    source, target, load = _prepare_copy(args, context)
    with translate_os_errors(args.path):
        relocate.copy_path(source, target, context.idempotency_key)
    return ToolResult(text=f"Copied {args.path} to {display_path(context.workspace, target)}: {load}.")


def _prepare_copy(args: CopyArgs, context: ToolContext) -> tuple[Path, Path, relocate.TransferSize]:
    source, target = resolve_inside(context.workspace, args.path), resolve_entry(context.workspace, args.to)
    with translate_os_errors(args.path):
        load = relocate.measure_size(source, args.path, bounded=True)
    _check_free(args.to, source, target, context.workspace)
    return source, target, load


async def foresee_copy(args: CopyArgs, context: ToolContext) -> Mapping[str, str]:
    source, _, load = await asyncio.to_thread(_prepare_copy, args, context)
    mark = await asyncio.to_thread(changeset.fingerprint_file, source) if source.is_file() else str(load)
    return {"content": mark}


async def recover_copy(args: CopyArgs, context: ToolContext) -> ToolResult | None:
    return await asyncio.to_thread(_recover_copy, args, context)


def _recover_copy(args: CopyArgs, context: ToolContext) -> ToolResult | None:
    """The copy appears by one rename, and its place was free: what is there with this content is the copy."""
    target = resolve_entry(context.workspace, args.to)
    relocate.remove_path(atomic_write.draft_path(target, context.idempotency_key))
    if not os.path.lexists(target):
        return None
    found = changeset.fingerprint_file(target) if target.is_file() else str(relocate.measure_size(target, args.to))
    if found == context.foreseen.get("content"):
        return ToolResult(text=f"{args.path} was copied to {args.to} before Sylph was interrupted.")
    raise OutcomeUnknown(
        f"Sylph was stopped while it copied {args.path}. Something else is at {args.to} now.",
        details={"now": found, **context.foreseen},
        next=["Look at it and decide what is left to do."],
    )


async def preview_copy(args: CopyArgs, context: ToolContext) -> str:
    _, target, load = await asyncio.to_thread(_prepare_copy, args, context)
    return f"would copy {args.path} ({load}) to {display_path(context.workspace, target)}"


def judge_copy(args: CopyArgs, context: ToolContext) -> CallAssessment:
    try:
        source, target = resolve_inside(context.workspace, args.path), resolve_entry(context.workspace, args.to)
    except ToolError as error:
        return assess_refusal(error, context.workspace, args.to)
    return assess_write(f"copies {args.path} to {display_path(context.workspace, target)}", target, reads=(source,))


async def delete_path(args: DeleteArgs, context: ToolContext) -> ToolResult:
    return await asyncio.to_thread(_move_to_trash, args, context)


def _move_to_trash(args: DeleteArgs, context: ToolContext) -> ToolResult:
    path, load = _measure_target(args, context)
    place = _trash_path(context, context.call)
    with translate_os_errors(args.path):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        origin = {
            "path": display_path(context.workspace, path),
            "workspace": str(context.workspace),
            "call": context.call,
        }
        place.with_name("origin.json").write_bytes(msgspec.json.encode(origin))
        relocate.move_path(path, place, context.idempotency_key)
    return ToolResult(
        text=f"Deleted {args.path} ({load}). It is kept in the session's trash; to bring it back: "
        f'move path="{TRASH_PREFIX}{context.call}" to="{display_path(context.workspace, path)}"'
    )


def _measure_target(args: DeleteArgs, context: ToolContext) -> tuple[Path, relocate.TransferSize]:
    path = resolve_entry(context.workspace, args.path)
    with translate_os_errors(args.path):
        return path, relocate.measure_size(path, args.path)


def _trash_path(context: ToolContext, call: str) -> Path:
    return context.private / "trash" / call / "item"


async def foresee_delete(args: DeleteArgs, context: ToolContext) -> Mapping[str, str]:
    path, _ = await asyncio.to_thread(_measure_target, args, context)
    return {"was": relocate.file_identity(path)}


async def recover_delete(args: DeleteArgs, context: ToolContext) -> ToolResult | None:
    path, place = resolve_entry(context.workspace, args.path), _trash_path(context, context.call)
    return await asyncio.to_thread(_find_moved, path, place, args.path, context)


async def preview_delete(args: DeleteArgs, context: ToolContext) -> str:
    _, load = await asyncio.to_thread(_measure_target, args, context)
    return f"would delete {args.path} ({load}); it can be brought back from the session's trash"


def judge_delete(args: DeleteArgs, context: ToolContext) -> CallAssessment:
    try:
        path = resolve_entry(context.workspace, args.path)
    except ToolError as error:
        return assess_refusal(error, context.workspace, args.path)
    return assess_write(f"deletes {display_path(context.workspace, path)}", path, risk="caution")


async def create_directory(args: CreateDirectoryArgs, context: ToolContext) -> ToolResult:
    path = resolve_writable(context.workspace, args.path)
    with translate_os_errors(args.path):
        if path.is_dir():
            return ToolResult(text=f"{args.path} is there already.")
        if path.exists():
            hint = ["Choose another name, or move the file away first."]
            raise ToolError(f"{args.path} exists already, and is no folder.", kind="exists", next=hint)
        path.mkdir(parents=True)
    return ToolResult(text=f"Made {display_path(context.workspace, path)}/.")


async def preview_create(args: CreateDirectoryArgs, context: ToolContext) -> str:
    return f"would make {display_path(context.workspace, resolve_writable(context.workspace, args.path))}/"


async def recover_create(args: CreateDirectoryArgs, context: ToolContext) -> ToolResult | None:
    """Making a folder that is there already does no harm."""
    return (
        None
        if not resolve_writable(context.workspace, args.path).is_dir()
        else ToolResult(text=f"{args.path} is there.")
    )


def judge_create(args: CreateDirectoryArgs, context: ToolContext) -> CallAssessment:
    try:
        path = resolve_writable(context.workspace, args.path)
    except ToolError as error:
        return assess_refusal(error, context.workspace, args.path)
    return assess_write(f"makes {display_path(context.workspace, path)}/", path)


MOVE = Tool(
    name="move",
    description="Move or rename a file or folder.",
    args=MoveArgs,
    run=move_path,
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
    args=CopyArgs,
    run=copy_path,
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
    args=DeleteArgs,
    run=delete_path,
    effect="write",
    risk="caution",
    recourse="by_content",
    preview=preview_delete,
    judge=judge_delete,
    foresee=foresee_delete,
    recover=recover_delete,
)
CREATE_DIRECTORY = Tool(
    name="create_directory",
    description="Make a folder, and those above it.",
    args=CreateDirectoryArgs,
    run=create_directory,
    effect="write",
    recourse="by_content",
    preview=preview_create,
    judge=judge_create,
    recover=recover_create,
)
