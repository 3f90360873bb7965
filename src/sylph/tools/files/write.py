"""Writing files of the workspace, and listing its folders."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from sylph.core.errors import ToolError
from sylph.core.text.formatting import count_noun
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files import atomic_write, folder_listing, text_file, write_recovery
from sylph.tools.files.edit import diff_preview
from sylph.tools.files.workspace_paths import (
    assess_read,
    assess_refusal,
    assess_write,
    display_path,
    printable_name,
    resolve_inside,
    resolve_writable,
    translate_os_errors,
)


class WriteArgs(ToolArgs, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, description="File; missing folders are made.")]
    content: Annotated[str, Meta(description="The whole new content.")]


class ListArgs(ToolArgs, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="Folder.")] = "."
    depth: Annotated[int, Meta(ge=1, le=10, description="Levels to show.")] = 1
    hidden: Annotated[bool, Meta(description="Show names that begin with a dot.")] = False


async def write_file(args: WriteArgs, context: ToolContext) -> ToolResult:
    return await asyncio.to_thread(_replace_content, args, context)


async def foresee_write(args: WriteArgs, context: ToolContext) -> Mapping[str, str]:
    path, data, _ = await asyncio.to_thread(_prepare_write, args, context.workspace)
    return write_recovery.expected_write(context.workspace, path, data)


async def recover_write(_: WriteArgs, context: ToolContext) -> ToolResult | None:
    return await asyncio.to_thread(write_recovery.recover_write, context)


def _prepare_write(args: WriteArgs, root: Path) -> tuple[Path, bytes, os.stat_result | None]:
    """Where the content goes, how it is to be written there, and what is there now."""
    path = resolve_writable(root, args.path)
    with translate_os_errors(args.path):
        head, was = b"", atomic_write.stat_or_none(path)
        if was:
            text_file.stat_file(path, args.path)
            text_file.refuse_write_protected(path, args.path)
            head = text_file.read_sample(path)
        return path, text_file.encode_like(args.content, head), was


def _replace_content(args: WriteArgs, context: ToolContext) -> ToolResult:
    path, data, was = _prepare_write(args, context.workspace)
    with translate_os_errors(args.path):
        atomic_write.replace_file(path, data, was=was, by=context.idempotency_key)
    said = "Replaced" if was else "Created"
    return ToolResult(
        text=f"{said} {display_path(context.workspace, path)}: {count_noun(len(args.content.splitlines()), 'line')}."
    )


async def preview_write(args: WriteArgs, context: ToolContext) -> str:
    return await asyncio.to_thread(_render_preview, args, context.workspace)


def _render_preview(args: WriteArgs, root: Path) -> str:
    path = resolve_writable(root, args.path)
    name = display_path(root, path)
    with translate_os_errors(args.path):
        if atomic_write.stat_or_none(path) is None:
            return diff_preview.new_file_preview(name, args.content)
        text_file.stat_file(path, args.path)
        if text_file.is_binary(text_file.read_sample(path)):
            return f"{name}: a binary file is replaced by {count_noun(len(args.content.splitlines()), 'line')}"
        return diff_preview.unified_diff(
            name, text_file.displayable_text(text_file.load_text(path, args.path)), args.content
        )


def judge_write(args: WriteArgs, context: ToolContext) -> CallAssessment:
    """Safe for a new file; overwriting loses something, and dotfiles steer other programs."""
    try:
        path = resolve_writable(context.workspace, args.path)
        with translate_os_errors(args.path):
            was = atomic_write.stat_or_none(path)
    except ToolError as error:
        return assess_refusal(error, context.workspace, args.path)
    name = display_path(context.workspace, path)
    if was:
        return assess_write(f"overwrites {name}", path, risk="caution")
    if any(part.startswith(".") for part in Path(name).parts):
        return assess_write(f"makes the hidden {name}", path, risk="caution")
    return assess_write(f"makes {name}", path)


def judge_list(args: ListArgs, context: ToolContext) -> CallAssessment:
    return assess_read(context.workspace, args.path)


async def list_folder(args: ListArgs, context: ToolContext) -> ToolResult:
    return await asyncio.to_thread(_render_listing, args, context.workspace)


def _render_listing(args: ListArgs, root: Path) -> ToolResult:
    path = resolve_inside(root, args.path)
    with translate_os_errors(args.path):
        if path.is_file():
            raise ToolError(f"{args.path} is a file.", kind="not_a_directory", next=[f"read(path={args.path!r})"])
        tree = folder_listing.render_folder(path, depth=args.depth, hidden=args.hidden)
    return ToolResult(text=tree or f"[{printable_name(args.path)} is empty]")


WRITE = Tool(
    name="write",
    description="Create a file or replace all of its content. To change part of a file use edit.",
    args=WriteArgs,
    run=write_file,
    effect="write",
    recourse="by_content",
    preview=preview_write,
    judge=judge_write,
    foresee=foresee_write,
    recover=recover_write,
)
LIST = Tool(
    name="list",
    description="List a folder; folders end in /.",
    args=ListArgs,
    run=list_folder,
    effect="read",
    recourse="pure",
    judge=judge_list,
)
