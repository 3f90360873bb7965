"""Changing a part of a file by naming the text that goes and the text that comes."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sylph.core.errors import ToolError
from sylph.core.text import count
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools import atomic, diff, document, outcome
from sylph.tools.nearest import nearest
from sylph.tools.workspace import changeable, changes, refusable, reported, shown

PLACES = 10


class Edit(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, description="File.")]
    old: Annotated[str, Meta(min_length=1, description="Exact text to replace, indentation included; must be unique.")]
    new: Annotated[str, Meta(description="Text to put in its place.")]
    all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    old: Annotated[str, Meta(min_length=1)]
    new: str
    all: bool = False


class MultiEdit(Args, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1)]
    edits: Annotated[
        tuple[Part, ...],
        Meta(min_length=1, max_length=200, description="Replacements as in edit, each made in what the last one left."),
    ]


AnyEdit = Edit | MultiEdit


class Change(Struct, frozen=True):
    """A file before and after; `lines` are where the replaced text began."""

    path: Path
    was: os.stat_result
    before: str
    after: str
    lines: tuple[int, ...]


async def edit(args: AnyEdit, context: Context) -> Result:
    return await asyncio.to_thread(_edit, args, context)


async def preview_edit(args: AnyEdit, context: Context) -> str:
    return await asyncio.to_thread(_preview, args, context.workspace)


async def foresee_edit(args: AnyEdit, context: Context) -> Mapping[str, str]:
    change = await asyncio.to_thread(prepare, args, context.workspace)
    return outcome.foresee(context.workspace, change.path, document.encode(change.after))


async def recover_edit(_: AnyEdit, context: Context) -> Result | None:
    return await asyncio.to_thread(outcome.recover, context)


def judge_edit(args: AnyEdit, context: Context) -> Judged:
    try:
        path = changeable(context.workspace, args.path)
    except ToolError as error:
        return refusable(error, context.workspace, args.path)
    return changes(f"changes {shown(context.workspace, path)}", path)


def _preview(args: AnyEdit, root: Path) -> str:
    change = prepare(args, root)
    return diff.unified(shown(root, change.path), document.readable(change.before), document.readable(change.after))


def _edit(args: AnyEdit, context: Context) -> Result:
    change = prepare(args, context.workspace)
    with reported(args.path):
        document.refuse_locked(change.path, args.path)
        atomic.replace(change.path, document.encode(change.after), was=change.was, by=context.key)
    done = count(len(change.lines), "replacement")
    return Result(text=f"{shown(context.workspace, change.path)}: {done}, line {_some(change.lines)}.")


def prepare(args: AnyEdit, root: Path) -> Change:
    """What the edit would do; raises ToolError where it cannot be done."""
    path = changeable(root, args.path)
    with reported(args.path):
        was = document.stat(path, args.path)
        before = document.load(path, args.path)
    if isinstance(args, Edit):
        after, lines = replaced(args.path, before, args)
        return Change(path, was, before, after, lines)
    after, lines = before, ()
    for number, part in enumerate(args.edits, 1):
        try:
            after, found = replaced(args.path, after, part)
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
    return Change(path, was, before, after, lines)


def replaced(name: str, text: str, part: Edit | Part) -> tuple[str, tuple[int, ...]]:
    """The text with one replacement, and the lines where it was made."""
    old, new = fit(text, part.old, part.new)
    if old == new:
        raise ToolError("old and new are the same: nothing would change.", kind="no_change")
    # Occurrences that overlap are two places to choose from, but only one to replace.
    lines = places(text, old, step=len(old) if part.all else 1)
    if not lines:
        raise _unmatched(name, part.old, text)
    if len(lines) > 1 and not part.all:
        raise _ambiguous(name, lines)
    return text.replace(old, new), lines


def fit(text: str, old: str, new: str) -> tuple[str, str]:
    """`old` and `new` with the line ends of the place they are meant for."""
    dosish = text.count("\r\n")
    if not dosish or "\r" in old:
        return old, new
    plain = text.count("\n") - dosish
    turn = not plain or document.dos(old) in text if "\n" in old else dosish > plain
    return (document.dos(old), document.dos(new)) if turn else (old, new)


def places(text: str, wanted: str, *, step: int) -> tuple[int, ...]:
    """The lines on which `wanted` begins, looking on `step` characters after each."""
    found: list[int] = []
    line, seen, at = 1, 0, text.find(wanted)
    while at >= 0:
        line += text.count("\n", seen, at)
        found.append(line)
        seen, at = at, text.find(wanted, at + step)
    return tuple(found)


def _some(lines: tuple[int, ...]) -> str:
    return ", ".join(str(line) for line in lines[:PLACES]) + (", …" if len(lines) > PLACES else "")


def _unmatched(name: str, old: str, text: str) -> ToolError:
    hint = nearest(document.readable(text), old)
    return ToolError(
        f"{name} does not hold that text." + (f" Nearest:\n{hint}" if hint else ""),
        kind="no_match",
        next=["Copy old exactly from the file, whitespace included; read it again if it may have changed."],
    )


def _ambiguous(name: str, lines: tuple[int, ...]) -> ToolError:
    return ToolError(
        f"{name} holds that text {len(lines)} times, at lines {_some(lines)}.",
        kind="not_unique",
        details={"lines": _some(lines)},
        next=["Add lines around it to old until it is unique.", "Set all=true to replace every one."],
    )


EDIT = Tool(
    name="edit",
    description="Replace exact text in a file.",
    args=Edit,
    run=edit,
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
    args=MultiEdit,
    run=edit,
    effect="write",
    recourse="by_content",
    preview=preview_edit,
    judge=judge_edit,
    foresee=foresee_edit,
    recover=recover_edit,
)
