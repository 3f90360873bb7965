"""A Jupyter notebook as text: its cells in order, each with what came of it."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from sylph.core.text.formatting import truncate_middle

# Of one output; more of it is read by running the cell.
OUTPUT = 4_000
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

Lines = str | list[str]


class _Output(msgspec.Struct):
    output_type: str = ""
    text: Lines = ""
    data: dict[str, Any] = {}
    ename: str = ""
    evalue: str = ""
    traceback: list[str] = []


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: Lines = ""
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


def render_notebook(data: bytes) -> str | None:
    """The cells and their outputs; None for what is no notebook of this format."""
    try:
        found = msgspec.json.decode(data, type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return "".join(line for number, cell in enumerate(found.cells, 1) for line in _render_cell(number, cell))


def _render_cell(number: int, cell: _Cell) -> Iterator[str]:
    yield f"[cell {number}: {cell.cell_type or 'unknown'}]\n"
    yield _with_newline(_join_lines(cell.source))
    for output in cell.outputs:
        yield f"[output of cell {number}]\n"
        yield _with_newline(truncate_middle(_render_output(output), OUTPUT))


def _render_output(output: _Output) -> str:
    if output.output_type == "error":
        return ESCAPES.sub("", "\n".join(output.traceback)) or f"{output.ename}: {output.evalue}"
    if output.text:
        return _join_lines(output.text)
    plain = output.data.get("text/plain", "")
    others = [kind for kind in output.data if kind != "text/plain"]
    said = _join_lines(plain) if isinstance(plain, str | list) else ""  # pyright: ignore[reportUnknownArgumentType]
    return "\n".join([*([said] if said else []), *(f"[{kind}]" for kind in others)])


def _join_lines(lines: Lines) -> str:
    return lines if isinstance(lines, str) else "".join(map(str, lines))


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
