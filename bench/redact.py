"""Looking for secrets: 1 MB of text, code and a lock file beside RE2 alone, and a usual output of a tool; CPU time."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import ROOT, Row, home
from sylph.core import facts
from sylph.engine.redact import patterns
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.redactor import Redactor
from sylph.engine.redact.secret_finder import build_prefilter

MEGABYTE, USUAL, TIMES = 1_000_000, 3_000, 15


def rows() -> list[Row]:
    alone = build_prefilter((*patterns.KEYS, *patterns.URLS, *patterns.ASSIGNED, *patterns.CARDS))
    with home() as folder:
        found = [_whole(name, text, alone, folder) for name, text in _texts().items()]
        output = _texts()["code"][:USUAL]
        found += [_fact("a fact with 3 kB of output", output, folder / "warm", warm=True)]
        found += [_fact("the same before RE2 is loaded", output, folder / "cold", warm=False)]
    return found


def _whole(name: str, text: str, alone: Any, folder: Path) -> Row:
    """One megabyte that was not seen before, beside the question alone which patterns it may hold."""
    redactor = Redactor(RedactionPolicy(), folder / "vault")
    redactor.redact_text(text[: MEGABYTE // 10])
    fresh = iter([f"{number}\n{text}" for number in range(TIMES)])
    data = text.encode()
    floor = _median(lambda: alone.Match(data))
    return Row(
        name=f"redact 1 MB, {name}",
        figure=_median(lambda: redactor.redact_text(next(fresh))),
        unit="ms",
        floor=floor,
        bar=60.0,
    )


def _fact(name: str, output: str, folder: Path, *, warm: bool) -> Row:
    def veiled(number: int, redactor: Redactor) -> float:
        fact = facts.ToolFinished(call="t1_c1", ok=True, output=f"{number}\n{output}")
        began = time.process_time()
        redactor.redact_fact(fact)
        return (time.process_time() - began) * 1000

    redactor = Redactor(RedactionPolicy(), folder)
    redactor.redact_text("to begin with")
    if warm:
        redactor.redact_text(output * 20)
    took = [veiled(number, redactor) for number in range(6 if not warm else TIMES * 20)]
    return Row(name=name, figure=median(took), unit="ms", bar=1.0)


def _median(act: Callable[[], object]) -> float:
    took: list[float] = []
    for _ in range(TIMES):
        began = time.process_time()
        act()
        took.append((time.process_time() - began) * 1000)
    return median(took)


def _texts() -> dict[str, str]:
    chance = random.Random(7)
    words = (ROOT / "docs" / "handbook" / "how-it-works.md").read_text().split()
    prose = " ".join(chance.choice(words) + ("\n" if chance.random() < 0.1 else "") for _ in range(MEGABYTE // 4))
    code = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    packages = {
        f"node_modules/package-{number}": {
            "version": f"{number % 9}.{number % 7}.0",
            "resolved": f"https://registry.example/package-{number}/-/package-{number}.tgz",
            "integrity": "sha512-" + "".join(chance.choices("ABCdef0123456789+/", k=86)) + "==",
            "dependencies": {"js-tokens": "^4.0.0"},
        }
        for number in range(4000)
    }
    lock = json.dumps({"lockfileVersion": 3, "packages": packages}, indent=2)
    return {"text": prose[:MEGABYTE], "code": code[:MEGABYTE], "lock file": lock[:MEGABYTE]}
