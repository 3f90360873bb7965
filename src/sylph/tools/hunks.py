"""Hunks put into a text: exactly where their lines stand, or not at all."""

from collections.abc import Sequence

from sylph.core.errors import ToolError
from sylph.tools import document
from sylph.tools.nearest import nearest
from sylph.tools.unified import Hunk

MARK = "\ufeff"


def patched(text: str, hunks: Sequence[Hunk], name: str) -> str:
    """`text` after all hunks. Lines may have moved; they may not have changed."""
    said = [line for hunk in hunks for line in (*hunk.old, *hunk.new)]
    lead = MARK if text.startswith(MARK) and not any(line.startswith(MARK) for line in said) else ""
    dosish = document.is_dos(document.encode(text)) and not any(line.endswith("\r\n") for line in said)
    lines = _split(text.removeprefix(lead))
    done: list[str] = [lead]
    at, moved = 0, 0
    for hunk in hunks:
        old, new = (_dos(hunk.old), _dos(hunk.new)) if dosish else (hunk.old, hunk.new)
        place = _place(lines, old, hunk, name, floor=at, moved=moved)
        done += [*lines[at:place], *new]
        at = place + len(old)
        moved = place - (hunk.start - 1) if hunk.start else moved
    whole = [line for line in (*done[1:], *lines[at:]) if line]
    if not all(line.endswith("\n") for line in whole[:-1]):
        raise ToolError(f"The patch says that {name} ends where it does not: a newline is missing.", kind="bad_patch")
    return "".join([lead, *whole])


def _place(lines: list[str], old: list[str], hunk: Hunk, name: str, *, floor: int, moved: int) -> int:
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
        if guess >= floor and lines[guess : guess + len(old)] == old:
            return guess
    found = [at for at in range(floor, len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    if len(found) == 1:
        return found[0]
    raise _ambiguous(hunk, name, found) if found else _unmatched(lines, old, hunk, name)


def _ambiguous(hunk: Hunk, name: str, found: list[int]) -> ToolError:
    places = ", ".join(str(at + 1) for at in found[:10])
    return ToolError(
        f"The hunk at line {hunk.line} of the patch fits {name} in {len(found)} places: lines {places}.",
        kind="not_unique",
        details={"lines": places},
        next=["Give more context, or the right line in its header."],
    )


def _unmatched(lines: list[str], old: list[str], hunk: Hunk, name: str) -> ToolError:
    text, wanted = "".join(lines), "".join(old)
    if wanted.removesuffix("\n") == text.removesuffix("\n")[-len(wanted.removesuffix("\n")) :]:
        has = "ends" if text.endswith("\n") else "does not end"
        hint = f"{name} {has} with a newline; say so with `\\ No newline at end of file` where there is none."
    else:
        near = nearest(document.readable(text), wanted)
        hint = f"Nearest:\n{near}" if near else "Nothing in it comes near."
    return ToolError(
        f"The lines of the hunk at line {hunk.line} of the patch are not in {name}. {hint}",
        kind="no_match",
        details={"line": hunk.line, "file": name},
        next=["Copy the context exactly from the file; read it again if it may have changed."],
    )


def _split(text: str) -> list[str]:
    """Lines with their ends; only a newline ends one."""
    lines = text.split("\n")
    whole = [f"{line}\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def _dos(lines: list[str]) -> list[str]:
    return [f"{line[:-1]}\r\n" if line.endswith("\n") else line for line in lines]
