#!/usr/bin/env python3
"""Print the size and shape of the code, beside what we aim for: a sense of proportion, not a law."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = 30
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))


def main() -> None:
    source, tests = read(ROOT / "src"), read(ROOT / "tests")
    if not source:
        sys.exit("There is no source to measure.")
    print(f"{'what':<34} {'here':>22}   aim")
    for what, here, aim in figures(source, tests):
        print(f"{what:<34} {here:>22}   {aim}")
    print("\nlongest files: " + ", ".join(f"{place(m)} {m.lines}" for m in top(source)))
    print("longest functions: " + ", ".join(f"{name} {size}" for size, name in longest(source)))


def read(folder: Path) -> list[Module]:
    texts = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    return [Module(path, text, ast.parse(text)) for path, text in texts.items() if text.strip()]


def figures(source: Sequence[Module], tests: Sequence[Module]) -> Iterator[tuple[str, str, str]]:
    functions = [function for module in source for function in module.functions()]
    lengths = [length(function) for function in functions]
    counts = [parameters(function) for function in functions]
    lines = sum(module.lines for module in source)
    text = "\n".join(module.text for module in source)
    many = sum(size > LONG for size in lengths)

    yield "files, lines", f"{len(source)}, {lines}", ""
    for room, limit in (("core", 800), ("engine", 2500)):
        yield f"lines of {room}", str(sum(m.lines for m in source if f"/{room}/" in str(m.path))), f"<= {limit}"
    yield "file length: median, p90, max", spread([module.lines for module in source]), "<= 120, <= 300, <= 400"
    yield "function length: median, p90, max", spread(lengths), "<= 8, <= 25, <= 60"
    yield f"functions over {LONG} lines", f"{100 * many / max(len(functions), 1):.1f} %", "<= 7 %"
    yield "parameters: median, p90, max", spread(counts), "p90 <= 4, max 6"
    yield "imports in functions", str(sum(map(lazy_imports, source))), "only to open a door: <= 1/k"
    yield "broad excepts", str(sum(map(broad_excepts, source))), "3"
    yield "modules that read the environment", str(sum(map(reads_environment, source))), "1"
    yield "`global` statements", str(count(source, ast.Global)), "0"
    yield "`dict[str, Any]` per 1,000 lines", f"{1000 * text.count('dict[str, Any]') / lines:.1f}", "<= 3"
    yield "`type: ignore`, `noqa` per 1,000", f"{1000 * waivers(text) / lines:.1f}", "0, never over 2"
    yield "words in a function's name (mean)", f"{words(functions):.1f}", "<= 2"
    yield "tests : source", f"{sum(module.lines for module in tests) / lines:.2f}", "1.0 - 1.8"


def spread(values: Iterable[int]) -> str:
    ordered = sorted(values) or [0]
    at = [ordered[min(int(len(ordered) * part), len(ordered) - 1)] for part in (0.5, 0.9, 1.0)]
    return ", ".join(map(str, at))


def length(function: Function) -> int:
    """The lines of a function, from its `def` to its end, without the docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def parameters(function: Function) -> int:
    taken = function.args
    names = [argument.arg for argument in taken.posonlyargs + taken.args + taken.kwonlyargs]
    return len([name for name in names if name not in {"self", "cls"}])


def lazy_imports(module: Module) -> int:
    inside = {node for function in module.functions() for node in ast.walk(function)}
    return sum(isinstance(node, ast.Import | ast.ImportFrom) for node in inside)


def broad_excepts(module: Module) -> int:
    handlers = [node for node in ast.walk(module.tree) if isinstance(node, ast.ExceptHandler)]
    return sum(h.type is None or ast.unparse(h.type) in {"Exception", "BaseException"} for h in handlers)


def reads_environment(module: Module) -> bool:
    return bool(re.search(r"\bos\.(environ|getenv)\b|from os import .*\b(environ|getenv)\b", module.text))


def waivers(text: str) -> int:
    return len(re.findall(r"# (?:type: ignore|pyright: ignore|noqa)", text))


def count(modules: Iterable[Module], kind: type[ast.AST]) -> int:
    return sum(isinstance(node, kind) for module in modules for node in ast.walk(module.tree))


def words(functions: Sequence[Function]) -> float:
    names = [function.name.strip("_") for function in functions if not function.name.startswith("__")]
    return sum(len(name.split("_")) for name in names) / max(len(names), 1)


def place(module: Module) -> str:
    return str(module.path.relative_to(ROOT / "src" / "sylph"))


def top(modules: Iterable[Module]) -> list[Module]:
    return sorted(modules, key=lambda module: -module.lines)[:5]


def longest(modules: Iterable[Module]) -> list[tuple[int, str]]:
    sizes = [(length(f), f"{place(module)}:{f.name}") for module in modules for f in module.functions()]
    return sorted(sizes, reverse=True)[:5]


if __name__ == "__main__":
    main()
