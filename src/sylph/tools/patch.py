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
from sylph.core.text import count, trim
from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.tools import changeset, document, unified
from sylph.tools.changeset import Content, Step, executable
from sylph.tools.hunks import patched
from sylph.tools.unified import Section
from sylph.tools.workspace import changeable, changes, entry, reported, shown

LARGEST = 4_000_000
FILES = 500
PREVIEW = 20_000


class Patch(Args, frozen=True, kw_only=True):
    patch: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=LARGEST,
            description="Unified diff, git's headers for renames and modes included; context must be exact. "
            "@@ without numbers will do.",
        ),
    ]


class _Tree(Struct):
    """The files a patch is about: as they are, what is made of them, and which are gone."""

    root: Path
    found: dict[Path, Content | None] = field(default_factory=dict[Path, Content | None])
    made: dict[Path, Content] = field(default_factory=dict[Path, Content])
    gone: set[Path] = field(default_factory=set[Path])
    edited: set[Path] = field(default_factory=set[Path])
    told: list[str] = field(default_factory=list[str])

    def take(self, section: Section) -> None:
        self.told.append(_told(section))
        if section.kind == "create":
            self.put(section, self.path(section.new), Content(b"", executable=section.mode == 0o755))
            return
        old = self.path(section.old, itself=section.kind in ("delete", "rename"))
        content = self.content(old, section)
        if section.kind == "modify":
            self.edited.add(old)
            self.made[old] = _changed(content, section)
            return
        if section.kind != "copy":
            self.gone.add(old)
        if section.kind != "delete":
            self.put(section, self.path(section.new, itself=True), content)
        elif _changed(content, section).data:
            raise _misfit(section, f"is to be removed, but the patch does not hold all of {section.old}")

    def content(self, path: Path, section: Section) -> Content:
        """What a change starts from: the file, or what an earlier part of the patch has made of it in its place."""
        known = self.made[path] if path in self.edited else self.seen(path)
        if known is None or path in self.gone:
            raise ToolError(
                f"{section.old} does not exist, or the patch has removed it.",
                kind="not_found",
                details={"line": section.line},
            )
        return known

    def put(self, section: Section, path: Path, content: Content) -> None:
        if path in self.made:
            raise _misfit(section, f"puts two files at {section.new}")
        self.made[path] = _changed(content, section)

    def path(self, name: str, *, itself: bool = False) -> Path:
        path = entry(self.root, name) if itself else changeable(self.root, name)
        if itself and path.is_symlink():
            raise ToolError(f"{name} is a symbolic link.", kind="not_a_file", next=["Use move or delete for it."])
        return path

    def seen(self, path: Path) -> Content | None:
        if path not in self.found:
            with reported(shown(self.root, path)):
                self.found[path] = changeset.load(path)
        return self.found[path]

    def steps(self) -> list[Step]:
        """What is left to do: each file once, and never over one that the patch does not know of."""
        for path in self.made:
            before = self.seen(path)
            if before is not None and path not in self.gone and path not in self.edited:
                raise ToolError(f"{shown(self.root, path)} exists already.", kind="exists", next=["Modify it instead."])
            self._free(path)
        after: dict[Path, Content | None] = {**dict.fromkeys(sorted(self.gone)), **self.made}
        return [Step(path, self.seen(path), new) for path, new in after.items() if self.seen(path) != new]

    def _free(self, path: Path) -> None:
        for place in path.parents:
            if place.is_dir() and place not in self.made:
                return
            if place in self.made or ((place.exists() or place.is_symlink()) and place not in self.gone):
                raise ToolError(f"{shown(self.root, place)} is a file, not a folder.", kind="not_a_directory")


def prepare(args: Patch, root: Path) -> tuple[list[Step], list[str]]:
    """The changes, and a line about each; raises ToolError where any of them cannot be made."""
    sections = unified.parse(args.patch)
    if len(sections) > FILES:
        raise ToolError(f"The patch is about {len(sections)} files; {FILES} at most.", kind="too_large")
    tree = _Tree(root)
    for section in sections:
        tree.take(section)
    steps = tree.steps()
    if not steps:
        raise ToolError("The patch changes nothing.", kind="no_change")
    for step in steps:
        if step.before:
            document.refuse_locked(step.path, shown(root, step.path))
    return steps, tree.told


async def patch(args: Patch, context: Context) -> Result:
    return await asyncio.to_thread(_patch, args, context)


def _patch(args: Patch, context: Context) -> Result:
    steps, told = prepare(args, context.workspace)
    changeset.apply(context.workspace, steps, context.key)
    return Result(text="\n".join([*told, f"{count(len(steps), 'file')} changed."]))


async def preview(args: Patch, context: Context) -> str:
    _, told = await asyncio.to_thread(prepare, args, context.workspace)
    return "\n".join([*told, "", trim(args.patch, PREVIEW)])


async def foresee(args: Patch, context: Context) -> Mapping[str, str]:
    steps, _ = await asyncio.to_thread(prepare, args, context.workspace)
    return changeset.foresee(context.workspace, steps)


async def recover(_: Patch, context: Context) -> Result | None:
    return await asyncio.to_thread(changeset.recover, context)


def judge(args: Patch, context: Context) -> Judged:
    """Caution where something is removed."""
    try:
        sections = unified.parse(args.patch)
        names = {name for section in sections for name in (section.old, section.new) if name != unified.NOTHING}
        paths = sorted(changeable(context.workspace, name) for name in names)
    except ToolError as error:
        return Judged("write", "dangerous", str(error))
    removes = any(section.kind in ("delete", "rename") for section in sections)
    return changes(f"patches {count(len(paths), 'file')}", *paths, risk="caution" if removes else "safe")


def _changed(content: Content, section: Section) -> Content:
    """A file after what its section says."""
    name, data, mode = section.new if section.kind == "create" else section.old, content.data, content.mode
    if section.hunks:
        document.refuse_binary(data[: document.SAMPLE], name)
        text = patched(data.decode("utf-8", "surrogateescape"), section.hunks, name)
        data = text.encode("utf-8", "surrogateescape")
    if section.mode is not None and mode is not None:
        mode = executable(mode) if section.mode == 0o755 else mode & ~0o111
    return replace(content, data=data, mode=mode)


def _told(section: Section) -> str:
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


def _misfit(section: Section, why: str) -> ToolError:
    return ToolError(f"The file at line {section.line} of the patch {why}.", kind="bad_patch")


PATCH = Tool(
    name="patch",
    description="Apply a unified diff to any number of files: all of it or nothing.",
    args=Patch,
    run=patch,
    effect="write",
    recourse="by_content",
    preview=preview,
    judge=judge,
    foresee=foresee,
    recover=recover,
)
