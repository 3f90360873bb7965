"""Prints the table: `scripts/bench`, or `scripts/bench turns store memory` for parts of it."""

import os
import sys

from bench import browser, commands, dialects, load, memory, redact, search, store, streams, turns, undo
from bench.measure import Row

PARTS = {
    "turns": turns.rows,
    "commands": commands.rows,
    "store": store.rows,
    "search": search.rows,
    "memory": memory.rows,
    "undo": undo.rows,
    "redact": redact.rows,
    "dialects": dialects.rows,
    "load": load.rows,
    "streams": streams.rows,
    "browser": browser.rows,
}


def main() -> int:
    wanted = sys.argv[1:] or list(PARTS)
    sys.stdout.write(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}\n\n")
    sys.stdout.write(_line("figure", "Sylph", "floor", "ratio", "bar", ""))
    rows: list[Row] = []
    for name in wanted:
        for row in PARTS[name]():
            sys.stdout.write(_show(row))
            sys.stdout.flush()
            rows.append(row)
    return 0 if all(row.holds for row in rows) else 1


def _show(row: Row) -> str:
    ratio = f"{row.figure / row.floor:.2f} x" if row.floor else ""
    floor = _number(row.floor) if row.floor is not None else ""
    bar = f"{'≥' if row.more else '≤'} {_number(row.bar)} {'ok' if row.holds else 'MISSED'}" if row.bar else ""
    return _line(row.name, f"{_number(row.figure)} {row.unit}", floor, ratio, bar, row.note)


def _line(*cells: str) -> str:
    widths = (34, 16, 10, 9, 16, 0)
    padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip() + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


sys.exit(main())
