"""Changing a part of a file by naming the text that goes and the text that comes."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sylph.core.errors import ToolError
from sylph.core.text.formatting import count_noun
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files import atomic_write, text_file, write_recovery
from sylph.tools.files.edit import diff_preview
from sylph.tools.files.edit.similar_lines import find_similar_lines
from sylph.tools.files.workspace_paths import (
    assess_refusal,
    assess_write,
    display_path,
    resolve_writable,
    translate_os_errors,
)

PLACES = 10


class EditArgs(ToolArgs, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, description="File.")]
    old: Annotated[str, Meta(min_length=1, description="Exact text to replace, indentation included; must be unique.")]
    new: Annotated[str, Meta(description="Text to put in its place.")]
    all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    old: Annotated[str, Meta(min_length=1)]
    new: str
    all: bool = False


class MultiEditArgs(ToolArgs, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1)]
    edits: Annotated[
        tuple[Part, ...],
        Meta(min_length=1, max_length=200, description="Replacements as in edit, each made in what the last one left."),
    ]


AnyEdit = EditArgs | MultiEditArgs


class PlannedEdit(Struct, frozen=True):
    """A file before and after; `lines` are where the replaced text began."""

    path: Path
    was: os.stat_result
    before: str
    after: str
    lines: tuple[int, ...]


async def edit_file(args: AnyEdit, context: ToolContext) -> ToolResult:
    return await asyncio.to_thread(_apply_edit, args, context)


async def preview_edit(args: AnyEdit, context: ToolContext) -> str:
    return await asyncio.to_thread(_render_preview, args, context.workspace)


async def foresee_edit(args: AnyEdit, context: ToolContext) -> Mapping[str, str]:
    change = await asyncio.to_thread(prepare_edit, args, context.workspace)
    return write_recovery.expected_write(context.workspace, change.path, text_file.encode_text(change.after))


async def recover_edit(_: AnyEdit, context: ToolContext) -> ToolResult | None:
    return await asyncio.to_thread(write_recovery.recover_write, context)


def judge_edit(args: AnyEdit, context: ToolContext) -> CallAssessment:
    try:
        path = resolve_writable(context.workspace, args.path)
    except ToolError as error:
        return assess_refusal(error, context.workspace, args.path)
    return assess_write(f"changes {display_path(context.workspace, path)}", path)


def _render_preview(args: AnyEdit, root: Path) -> str:
    change = prepare_edit(args, root)
    return diff_preview.unified_diff(
        display_path(root, change.path),
        text_file.displayable_text(change.before),
        text_file.displayable_text(change.after),
    )


def _apply_edit(args: AnyEdit, context: ToolContext) -> ToolResult:
    change = prepare_edit(args, context.workspace)
    with translate_os_errors(args.path):
        text_file.refuse_write_protected(change.path, args.path)
        atomic_write.replace_file(
            change.path, text_file.encode_text(change.after), was=change.was, by=context.idempotency_key
        )
    done = count_noun(len(change.lines), "replacement")
    return ToolResult(
        text=f"{display_path(context.workspace, change.path)}: {done}, line {_format_lines(change.lines)}."
    )


def prepare_edit(args: AnyEdit, root: Path) -> PlannedEdit:
    """What the edit would do; raises ToolError where it cannot be done."""
    path = resolve_writable(root, args.path)
    with translate_os_errors(args.path):
        was = text_file.stat_file(path, args.path)
        before = text_file.load_text(path, args.path)
    if isinstance(args, EditArgs):
        after, lines = replace_text(args.path, before, args)
        return PlannedEdit(path, was, before, after, lines)
    after, lines = before, ()
    for number, part in enumerate(args.edits, 1):
        try:
            after, found = replace_text(args.path, after, part)
        except ToolError as error:
            told = error.trouble
            raise ToolError(
                f"Edit {number} of {len(args.edits)}: {told.message} None of them was made.",
                kind=told.kind,
                details=told.details,
                next=told.next,
            ) from error
        lines += found
    if after == before:
        raise ToolError("The edits undo each other: nothing would change.", kind="no_change")
    return PlannedEdit(path, was, before, after, lines)


def replace_text(name: str, text: str, part: EditArgs | Part) -> tuple[str, tuple[int, ...]]:
    """The text with one replacement, and the lines where it was made."""
    old, new = fit_line_ends(text, part.old, part.new)
    if old == new:
        raise ToolError("old and new are the same: nothing would change.", kind="no_change")
    # Occurrences that overlap are two places to choose from, but only one to replace.
    lines = matching_lines(text, old, step=len(old) if part.all else 1)
    if not lines:
        raise _no_match_error(name, part.old, text)
    if len(lines) > 1 and not part.all:
        raise _not_unique_error(name, lines)
    return text.replace(old, new), lines


def fit_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """`old` and `new` with the line ends of the place they are meant for."""
    dosish = text.count("\r\n")
    if not dosish or "\r" in old:
        return old, new
    plain = text.count("\n") - dosish
    turn = not plain or text_file.to_crlf(old) in text if "\n" in old else dosish > plain
    return (text_file.to_crlf(old), text_file.to_crlf(new)) if turn else (old, new)


def matching_lines(text: str, wanted: str, *, step: int) -> tuple[int, ...]:
    """The lines on which `wanted` begins, looking on `step` characters after each."""
    found: list[int] = []
    line, seen, at = 1, 0, text.find(wanted)
    while at >= 0:
        line += text.count("\n", seen, at)
        found.append(line)
        seen, at = at, text.find(wanted, at + step)
    return tuple(found)


def _format_lines(lines: tuple[int, ...]) -> str:
    return ", ".join(str(line) for line in lines[:PLACES]) + (", …" if len(lines) > PLACES else "")


def _no_match_error(name: str, old: str, text: str) -> ToolError:
    hint = find_similar_lines(text_file.displayable_text(text), old)
    return ToolError(
        f"{name} does not hold that text." + (f" Nearest:\n{hint}" if hint else ""),
        kind="no_match",
        next=["Copy old exactly from the file, whitespace included; read it again if it may have changed."],
    )


def _not_unique_error(name: str, lines: tuple[int, ...]) -> ToolError:
    return ToolError(
        f"{name} holds that text {len(lines)} times, at lines {_format_lines(lines)}.",
        kind="not_unique",
        details={"lines": _format_lines(lines)},
        next=["Add lines around it to old until it is unique.", "Set all=true to replace every one."],
    )


EDIT = Tool(
    name="edit",
    description="Replace exact text in a file.",
    args=EditArgs,
    run=edit_file,
    effect="write",
    recourse="by_content",
    preview=preview_edit,
    judge=judge_edit,
    foresee=foresee_edit,
    recover=recover_edit,
)
MULTI_EDIT = Tool(
    name="multi_edit",
    description="Make several replacements in one file: all or none.",
    args=MultiEditArgs,
    run=edit_file,
    effect="write",
    recourse="by_content",
    preview=preview_edit,
    judge=judge_edit,
    foresee=foresee_edit,
    recover=recover_edit,
)
