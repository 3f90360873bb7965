"""Applying a unified diff to the workspace, whole or not at all.

Read and applied by our own code: the libraries for it only parse, or apply file by file and guess at context;
`git apply` needs git, says only that a hunk does not fit, and leaves nothing to finish from after a crash.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from sylph.core.errors import ToolError
from sylph.core.text.formatting import count_noun, truncate_middle
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.tools.files import text_file
from sylph.tools.files.edit import changeset, patch_parser
from sylph.tools.files.edit.changeset import ChangesetStep, FileContent, with_execute_bits
from sylph.tools.files.edit.hunks import apply_hunks
from sylph.tools.files.edit.patch_parser import FilePatch
from sylph.tools.files.workspace_paths import (
    assess_write,
    display_path,
    resolve_entry,
    resolve_writable,
    translate_os_errors,
)

LARGEST = 4_000_000
FILES = 500
PREVIEW = 20_000


class PatchArgs(ToolArgs, frozen=True, kw_only=True):
    patch: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=LARGEST,
            description="Unified diff, git's headers for renames and modes included; context must be exact. "
            "@@ without numbers will do.",
        ),
    ]


class _PatchedTree(Struct):
    """The files a patch is about: as they are, what is made of them, and which are gone."""

    root: Path
    originals: dict[Path, FileContent | None] = field(default_factory=dict[Path, FileContent | None])
    results: dict[Path, FileContent] = field(default_factory=dict[Path, FileContent])
    removed: set[Path] = field(default_factory=set[Path])
    edited: set[Path] = field(default_factory=set[Path])
    summaries: list[str] = field(default_factory=list[str])

    def apply_section(self, section: FilePatch) -> None:
        self.summaries.append(_describe_section(section))
        if section.kind == "create":
            self.add_file(section, self.resolve_path(section.new), FileContent(b"", executable=section.mode == 0o755))
            return
        old = self.resolve_path(section.old, itself=section.kind in ("delete", "rename"))
        content = self.source_content(old, section)
        if section.kind == "modify":
            self.edited.add(old)
            self.results[old] = _patch_content(content, section)
            return
        if section.kind != "copy":
            self.removed.add(old)
        if section.kind != "delete":
            self.add_file(section, self.resolve_path(section.new, itself=True), content)
        elif _patch_content(content, section).data:
            raise _section_error(section, f"is to be removed, but the patch does not hold all of {section.old}")

    def source_content(self, path: Path, section: FilePatch) -> FileContent:
        """What a change starts from: the file, or what an earlier part of the patch has made of it in its place."""
        known = self.results[path] if path in self.edited else self.current_content(path)
        if known is None or path in self.removed:
            raise ToolError(
                f"{section.old} does not exist, or the patch has removed it.",
                kind="not_found",
                details={"line": section.line},
            )
        return known

    def add_file(self, section: FilePatch, path: Path, content: FileContent) -> None:
        if path in self.results:
            raise _section_error(section, f"puts two files at {section.new}")
        self.results[path] = _patch_content(content, section)

    def resolve_path(self, name: str, *, itself: bool = False) -> Path:
        path = resolve_entry(self.root, name) if itself else resolve_writable(self.root, name)
        if itself and path.is_symlink():
            raise ToolError(f"{name} is a symbolic link.", kind="not_a_file", next=["Use move or delete for it."])
        return path

    def current_content(self, path: Path) -> FileContent | None:
        if path not in self.originals:
            with translate_os_errors(display_path(self.root, path)):
                self.originals[path] = changeset.load_content(path)
        return self.originals[path]

    def build_steps(self) -> list[ChangesetStep]:
        """What is left to do: each file once, and never over one that the patch does not know of."""
        for path in self.results:
            before = self.current_content(path)
            if before is not None and path not in self.removed and path not in self.edited:
                raise ToolError(
                    f"{display_path(self.root, path)} exists already.", kind="exists", next=["Modify it instead."]
                )
            self._check_parents(path)
        after: dict[Path, FileContent | None] = {**dict.fromkeys(sorted(self.removed)), **self.results}
        return [
            ChangesetStep(path, self.current_content(path), new)
            for path, new in after.items()
            if self.current_content(path) != new
        ]

    def _check_parents(self, path: Path) -> None:
        for place in path.parents:
            if place.is_dir() and place not in self.results:
                return
            if place in self.results or ((place.exists() or place.is_symlink()) and place not in self.removed):
                raise ToolError(f"{display_path(self.root, place)} is a file, not a folder.", kind="not_a_directory")


def prepare_patch(args: PatchArgs, root: Path) -> tuple[list[ChangesetStep], list[str]]:
    """The changes, and a line about each; raises ToolError where any of them cannot be made."""
    sections = patch_parser.parse_patch(args.patch)
    if len(sections) > FILES:
        raise ToolError(f"The patch is about {len(sections)} files; {FILES} at most.", kind="too_large")
    tree = _PatchedTree(root)
    for section in sections:
        tree.apply_section(section)
    steps = tree.build_steps()
    if not steps:
        raise ToolError("The patch changes nothing.", kind="no_change")
    for step in steps:
        if step.before:
            text_file.refuse_write_protected(step.path, display_path(root, step.path))
    return steps, tree.summaries


async def apply_patch(args: PatchArgs, context: ToolContext) -> ToolResult:
    return await asyncio.to_thread(_apply_patch, args, context)


def _apply_patch(args: PatchArgs, context: ToolContext) -> ToolResult:
    steps, told = prepare_patch(args, context.workspace)
    changeset.apply_changes(context.workspace, steps, context.idempotency_key)
    return ToolResult(text="\n".join([*told, f"{count_noun(len(steps), 'file')} changed."]))


async def preview_patch(args: PatchArgs, context: ToolContext) -> str:
    _, told = await asyncio.to_thread(prepare_patch, args, context.workspace)
    return "\n".join([*told, "", truncate_middle(args.patch, PREVIEW)])


async def foresee_patch(args: PatchArgs, context: ToolContext) -> Mapping[str, str]:
    steps, _ = await asyncio.to_thread(prepare_patch, args, context.workspace)
    return changeset.expected_changes(context.workspace, steps)


async def recover_patch(_: PatchArgs, context: ToolContext) -> ToolResult | None:
    return await asyncio.to_thread(changeset.recover_changes, context)


def judge_patch(args: PatchArgs, context: ToolContext) -> CallAssessment:
    """Caution where something is removed."""
    try:
        sections = patch_parser.parse_patch(args.patch)
        names = {name for section in sections for name in (section.old, section.new) if name != patch_parser.DEV_NULL}
        paths = sorted(resolve_writable(context.workspace, name) for name in names)
    except ToolError as error:
        return CallAssessment("write", "dangerous", str(error))
    removes = any(section.kind in ("delete", "rename") for section in sections)
    return assess_write(f"patches {count_noun(len(paths), 'file')}", *paths, risk="caution" if removes else "safe")


def _patch_content(content: FileContent, section: FilePatch) -> FileContent:
    """A file after what its section says."""
    name, data, mode = section.new if section.kind == "create" else section.old, content.data, content.mode
    if section.hunks:
        text_file.refuse_binary(data[: text_file.SAMPLE], name)
        text = apply_hunks(data.decode("utf-8", "surrogateescape"), section.hunks, name)
        data = text.encode("utf-8", "surrogateescape")
    if section.mode is not None and mode is not None:
        mode = with_execute_bits(mode) if section.mode == 0o755 else mode & ~0o111
    return replace(content, data=data, mode=mode)


def _describe_section(section: FilePatch) -> str:
    match section.kind:
        case "create":
            return f"made {section.new}"
        case "delete":
            return f"removed {section.old}"
        case "rename":
            return f"renamed {section.old} to {section.new}"
        case "copy":
            return f"copied {section.old} to {section.new}"
        case "modify":
            return f"changed {section.new}"


def _section_error(section: FilePatch, why: str) -> ToolError:
    return ToolError(f"The file at line {section.line} of the patch {why}.", kind="bad_patch")


PATCH = Tool(
    name="patch",
    description="Apply a unified diff to any number of files: all of it or nothing.",
    args=PatchArgs,
    run=apply_patch,
    effect="write",
    recourse="by_content",
    preview=preview_patch,
    judge=judge_patch,
    foresee=foresee_patch,
    recover=recover_patch,
)
