"""Whether a text is well formed, by its kind; nothing of it is ever executed."""

import ast
import configparser
import importlib
import json
import threading
import tomllib
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from xml.parsers import expat

from sylph.tools.files.syntax_flaw import SyntaxFlaw

# Python's filter of warnings is one for all threads.
_QUIET = threading.Lock()


Check = Callable[[bytes], SyntaxFlaw | None]


def check_python(data: bytes) -> SyntaxFlaw | None:
    try:
        with _QUIET, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except SyntaxError as error:
        return SyntaxFlaw(error.msg, error.lineno or 0, error.offset or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxFlaw(str(error) or "it is nested too deeply")
    return None


def check_json(data: bytes) -> SyntaxFlaw | None:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return SyntaxFlaw(error.msg, error.lineno, error.colno)
    except RecursionError:
        return SyntaxFlaw("it is nested too deeply")
    return None


def check_notebook(data: bytes) -> SyntaxFlaw | None:
    if flaw := check_json(data):
        return flaw
    found = json.loads(data)
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):  # pyright: ignore[reportUnknownMemberType]
        return SyntaxFlaw("it has no list of cells")
    missing = [key for key in ("metadata", "nbformat", "nbformat_minor") if key not in found]
    return SyntaxFlaw(f"it lacks {', '.join(missing)}") if missing else None


def check_toml(data: bytes) -> SyntaxFlaw | None:
    text = data.decode()
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at line ")
        line, _, column = place.removesuffix(")").partition(", column ")
        # The end of the document is the one place it gives no number for.
        return SyntaxFlaw(message, int(line), int(column)) if place else SyntaxFlaw(message, text.count("\n") + 1)
    except RecursionError:
        return SyntaxFlaw("it is nested too deeply")
    return None


def check_yaml(data: bytes) -> SyntaxFlaw | None:
    # Imported by name: 20 ms that only this check needs.
    parser: Any = importlib.import_module("yaml")
    try:
        for _ in parser.parse(data, Loader=parser.CSafeLoader):
            pass
    except parser.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        return SyntaxFlaw(said, mark.line + 1, mark.column + 1) if mark else SyntaxFlaw(said)
    except (parser.YAMLError, RecursionError) as error:
        return SyntaxFlaw(" ".join(str(error).split()) or "it is nested too deeply")
    return None


def check_xml(data: bytes) -> SyntaxFlaw | None:
    parser = expat.ParserCreate()
    try:
        parser.Parse(data, True)  # noqa: FBT003 - its only way
    except expat.ExpatError as error:
        return SyntaxFlaw(expat.ErrorString(error.code), error.lineno, error.offset + 1)
    return None


def check_ini(data: bytes) -> SyntaxFlaw | None:
    try:
        configparser.RawConfigParser(allow_no_value=True).read_string(data.decode("utf-8-sig"))
    except configparser.MissingSectionHeaderError as error:
        return SyntaxFlaw("a setting stands before the first [section]", error.lineno, 1)
    except configparser.ParsingError as error:
        line, text = error.errors[0]
        return SyntaxFlaw(f"this is no setting: {text}", line, 1)
    except (configparser.DuplicateSectionError, configparser.DuplicateOptionError) as error:
        return SyntaxFlaw(error.message.rpartition(": ")[2], error.lineno or 0)
    return None


def check_markdown(data: bytes) -> SyntaxFlaw | None:
    """Fences that are opened and never closed swallow the rest of the document."""
    fence, began = "", 0
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        bare = line.strip()
        mark = bare[:1]
        run = bare[: len(bare) - len(bare.lstrip(mark))] if mark in ("`", "~") and mark else ""
        if len(run) < 3 or len(line) - len(line.lstrip(" ")) > 3:
            continue
        if not fence and not (mark == "`" and "`" in bare[len(run) :]):
            fence, began = run, number
        elif fence and run.startswith(fence) and bare == run:
            fence = ""
    return SyntaxFlaw("a fence is opened here and never closed", began, 1) if fence else None


CHECKS: Mapping[str, tuple[str, Check]] = {
    ".py": ("Python", check_python),
    ".pyi": ("Python", check_python),
    ".json": ("JSON", check_json),
    ".ipynb": ("notebook", check_notebook),
    ".toml": ("TOML", check_toml),
    ".yaml": ("YAML", check_yaml),
    ".yml": ("YAML", check_yaml),
    ".xml": ("XML", check_xml),
    ".svg": ("XML", check_xml),
    ".ini": ("INI", check_ini),
    ".cfg": ("INI", check_ini),
    ".md": ("Markdown fences", check_markdown),
    ".markdown": ("Markdown fences", check_markdown),
}
