"""Hunks put into a text: exactly where their lines stand, or not at all."""

from collections.abc import Sequence

from sylph.core.errors import ToolError
from sylph.tools.files import text_file
from sylph.tools.files.edit.patch_parser import PatchHunk
from sylph.tools.files.edit.similar_lines import find_similar_lines

MARK = "\ufeff"


def apply_hunks(text: str, hunks: Sequence[PatchHunk], name: str) -> str:
    """`text` after all hunks. Lines may have moved; they may not have changed."""
    said = [line for hunk in hunks for line in (*hunk.old, *hunk.new)]
    lead = MARK if text.startswith(MARK) and not any(line.startswith(MARK) for line in said) else ""
    dosish = text_file.has_crlf(text_file.encode_text(text)) and not any(line.endswith("\r\n") for line in said)
    lines = _split_lines(text.removeprefix(lead))
    done: list[str] = [lead]
    at, moved = 0, 0
    for hunk in hunks:
        old, new = (_to_crlf(hunk.old), _to_crlf(hunk.new)) if dosish else (hunk.old, hunk.new)
        place = _locate_hunk(lines, old, hunk, name, context=at, moved=moved)
        done += [*lines[at:place], *new]
        at = place + len(old)
        moved = place - (hunk.start - 1) if hunk.start else moved
    whole = [line for line in (*done[1:], *lines[at:]) if line]
    if not all(line.endswith("\n") for line in whole[:-1]):
        raise ToolError(f"The patch says that {name} ends where it does not: a newline is missing.", kind="bad_patch")
    return "".join([lead, *whole])


def _locate_hunk(lines: list[str], old: list[str], hunk: PatchHunk, name: str, *, context: int, moved: int) -> int:
    if not old:
        if lines:
            raise ToolError(
                f"The hunk at line {hunk.line} of the patch has no line of {name} around it; its place is not sure.",
                kind="no_context",
                next=["Give some lines before and after as context."],
            )
        return 0
    if hunk.start is not None:
        guess = hunk.start - 1 + moved
        if guess >= context and lines[guess : guess + len(old)] == old:
            return guess
    found = [at for at in range(context, len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    if len(found) == 1:
        return found[0]
    raise _not_unique_error(hunk, name, found) if found else _no_match_error(lines, old, hunk, name)


def _not_unique_error(hunk: PatchHunk, name: str, found: list[int]) -> ToolError:
    places = ", ".join(str(at + 1) for at in found[:10])
    return ToolError(
        f"The hunk at line {hunk.line} of the patch fits {name} in {len(found)} places: lines {places}.",
        kind="not_unique",
        details={"lines": places},
        next=["Give more context, or the right line in its header."],
    )


def _no_match_error(lines: list[str], old: list[str], hunk: PatchHunk, name: str) -> ToolError:
    text, wanted = "".join(lines), "".join(old)
    if wanted.removesuffix("\n") == text.removesuffix("\n")[-len(wanted.removesuffix("\n")) :]:
        has = "ends" if text.endswith("\n") else "does not end"
        hint = f"{name} {has} with a newline; say so with `\\ No newline at end of file` where there is none."
    else:
        near = find_similar_lines(text_file.displayable_text(text), wanted)
        hint = f"Nearest:\n{near}" if near else "Nothing in it comes near."
    return ToolError(
        f"The lines of the hunk at line {hunk.line} of the patch are not in {name}. {hint}",
        kind="no_match",
        details={"line": hunk.line, "file": name},
        next=["Copy the context exactly from the file; read it again if it may have changed."],
    )


def _split_lines(text: str) -> list[str]:
    """Lines with their ends; only a newline ends one."""
    lines = text.split("\n")
    whole = [f"{line}\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def _to_crlf(lines: list[str]) -> list[str]:
    return [f"{line[:-1]}\r\n" if line.endswith("\n") else line for line in lines]
