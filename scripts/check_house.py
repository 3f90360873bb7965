#!/usr/bin/env python3
"""Hold the names, the rooms and the sizes of the source to what we agreed on.

    scripts/check_house.py          fails where a figure is over its limit, and names the worst places
    scripts/check_house.py --list   names all of them

The limits stand in this file, each with its reason; raise one here and nowhere else.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "sylph"
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Shares of names, in percent.
SHARED_CLASSES = 6.0
PARTICIPLES = 2.0
ONE_WORD = 60.0

LONGEST_FILE = 450
MOST_FILES = 13
# Folders that hold more, and why.
CROWDED: dict[str, tuple[int, str]] = {}
# Files that are longer, and why.
LONG_FILES: dict[str, tuple[int, str]] = {
    "engine/runtime/runtime.py": (510, "three objects in one: sessions, reading, upkeep; to be taken apart"),
    "engine/turn/session.py": (515, "settings and questions could leave it; to be taken apart"),
    "web/src/log/events.ts": (620, "written by scripts/reference from the declarations of the facts"),
}
# Lines of a room, blank ones and comments counted: what it has today, and a little room to move.
ROOMS: dict[str, int] = {
    "core": 3_300,
    "engine": 15_700,
    "providers": 10_200,
    "tools": 13_600,
    "interfaces": 25_800,
    "features": 4_500,
}

# A function named by one of these says what it returns, and not what it does.
PARTICIPLE = re.compile(
    r"([a-z]{2,}ed|begun|bought|bound|broken|brought|built|caught|chosen|cut|dealt|done|drawn|driven|felt|forgotten|found"
    r"|frozen|given|gone|grown|heard|held|hidden|kept|known|led|left|lent|lost|made|meant|met|paid|put|said|seen|sent|shown"
    r"|sought|spent|spoken|split|stolen|taken|thrown|told|torn|understood|worn|written)"
)
# Words that only look like one, or are verbs as well.
VERBS = frozenset(
    {
        "bound",
        "cut",
        "embed",
        "exceed",
        "feed",
        "found",
        "led",
        "need",
        "proceed",
        "put",
        "seed",
        "shed",
        "speed",
        "split",
    }
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that is counted: how many of how many, where, and how much of it may be."""

    name: str
    count: int
    total: int
    limit: float
    places: list[str]

    @property
    def share(self) -> float:
        return 100 * self.count / max(self.total, 1)

    @property
    def holds(self) -> bool:
        return self.share <= self.limit

    def __str__(self) -> str:
        return f"{self.name}: {self.count} of {self.total}, {self.share:.1f} % (at most {self.limit:g} %)"


def main(arguments: list[str]) -> int:
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    most = None if "--list" in arguments else 12
    failed = False
    for figure in (shared_classes(trees), participles(trees), one_word_names(trees)):
        print(f"   {figure}")
        if not figure.holds or most is None:
            print("".join(f"      {place}\n" for place in figure.places[:most]), end="")
        failed |= not figure.holds
    for complaint in (*crowded_folders(trees), *long_files(), *large_rooms()):
        print(f"   {complaint}")
        failed = True
    return int(failed)


def shared_classes(trees: dict[Path, ast.Module]) -> Figure:
    where: dict[str, list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(path)
    shared = {name: paths for name, paths in where.items() if len(set(paths)) > 1}
    places = [f"{name}: {', '.join(map(relative, paths))}" for name, paths in sorted(shared.items())]
    total = sum(map(len, where.values()))
    count = sum(map(len, shared.values()))
    return Figure("public class names that modules share", count, total, SHARED_CLASSES, places)


def participles(trees: dict[Path, ast.Module]) -> Figure:
    """Files and functions; a property may be one: `closed`, `expired`."""
    functions = [(path, node) for path, node in all_functions(trees) if not is_property(node)]
    names = [(relative(path), path.stem) for path in trees]
    names += [(f"{relative(path)}:{node.lineno} {node.name}", node.name) for path, node in functions]
    places = [place for place, name in names if is_participle(name)]
    return Figure("files and functions named by a bare participle", len(places), len(names), PARTICIPLES, places)


def one_word_names(trees: dict[Path, ast.Module]) -> Figure:
    names = [(path, node) for path, node in all_functions(trees) if not is_dunder(node.name)]
    single = [(path, node) for path, node in names if len(node.name.strip("_").split("_")) == 1]
    by_file = Counter(relative(path) for path, _ in single)
    places = [f"{path}: {count}" for path, count in by_file.most_common()]
    return Figure("function names of one word", len(single), len(names), ONE_WORD, places)


def crowded_folders(trees: dict[Path, ast.Module]) -> Iterator[str]:
    for folder, count in Counter(path.parent for path in trees if path.name != "__init__.py").items():
        limit, _ = CROWDED.get(relative(folder), (MOST_FILES, ""))
        if count > limit:
            yield f"{relative(folder)} holds {count} files, at most {limit}"


def long_files() -> Iterator[str]:
    for path in source_files():
        lines = len(path.read_text().splitlines())
        limit, _ = LONG_FILES.get(relative(path), (LONGEST_FILE, ""))
        if lines > limit:
            yield f"{relative(path)} has {lines} lines, at most {limit}"


def source_files() -> Iterable[Path]:
    web = (path for kind in ("*.ts", "*.svelte", "*.css") for path in (ROOT / "web" / "src").rglob(kind))
    return sorted([*SOURCE.rglob("*.py"), *web])


def large_rooms() -> Iterator[str]:
    for room, limit in ROOMS.items():
        lines = sum(len(path.read_text().splitlines()) for path in (SOURCE / room).rglob("*.py"))
        if lines > limit:
            yield f"{room} has {lines} lines, at most {limit}"


def all_functions(trees: dict[Path, ast.Module]) -> Iterator[tuple[Path, Function]]:
    return ((path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, Function))


def is_participle(name: str) -> bool:
    bare = name.strip("_")
    return bare not in VERBS and PARTICIPLE.fullmatch(bare) is not None


def is_property(node: Function) -> bool:
    return any("property" in ast.unparse(each) for each in node.decorator_list)


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def relative(path: Path) -> str:
    base = SOURCE if path.is_relative_to(SOURCE) else ROOT
    return str(path.relative_to(base))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
