"""Start-up, a one-shot answer, and 50 tool rounds, through the real program."""

import sqlite3
from itertools import pairwise
from pathlib import Path
from statistics import mean

from bench.measure import PYTHON, ROOT, SYLPH, Row, Used, environment, home, repeat, run, server

ANSWER = [{"text": "The answer is forty-two, as everybody knows by now."}]
FLOOR = str(ROOT / "bench" / "floor.py")
TASK = [SYLPH, "--mode", "trust", "-m", "openai/scripted", "go and do it"]


def _shells(count: int) -> list[object]:
    return [{"calls": [["shell", {"command": f"echo {number}"}]]} for number in range(count)]


def rows() -> list[Row]:
    return [*_start(), *_answer(), *_rounds()]


def _start() -> list[Row]:
    bare = repeat(15, [PYTHON, "-c", "pass"])
    version = repeat(15, [SYLPH, "--version"])
    usage = repeat(7, [SYLPH, "--help"])
    return [
        Row(
            name="sylph --version", figure=version.wall * 1000, unit="ms", floor=bare.wall * 1000, bar=bare.wall * 2000
        ),
        Row(name="sylph --help", figure=usage.cpu * 1000, unit="ms CPU", floor=bare.cpu * 1000, bar=150),
    ]


def _answer() -> list[Row]:
    with server(ANSWER) as url, home() as folder:
        used = repeat(9, TASK, env=environment(folder, url), cwd=folder)
        floor = repeat(9, [PYTHON, FLOOR, url])
    return [
        Row(name="one-shot answer, CPU", figure=used.cpu, unit="s", floor=floor.cpu, bar=0.25),
        Row(name="one-shot answer, wall", figure=used.wall, unit="s", floor=floor.wall),
        Row(name="one-shot answer, peak memory", figure=used.peak_mb, unit="MB", floor=floor.peak_mb),
    ]


def _rounds() -> list[Row]:
    with server([*_shells(50), *ANSWER]) as url:
        floor_all = repeat(5, [PYTHON, FLOOR, url])
        with home() as folder:
            all_ = repeat(5, TASK, env=environment(folder, url), cwd=folder)
    with server(ANSWER) as url, home() as folder:
        floor_one = repeat(5, [PYTHON, FLOOR, url])
        one = repeat(5, TASK, env=environment(folder, url), cwd=folder)
    early, late = _growth()
    per, bare = _per_round(all_, one), _per_round(floor_all, floor_one)
    return [
        Row(name="50 shell rounds, per round", figure=per, unit="ms", floor=bare, note="model server's time included"),
        Row(name="… harness time: over the floor, sandbox on", figure=per - bare, unit="ms", bar=14.0),
        Row(
            name="… CPU per round",
            figure=(all_.cpu - one.cpu) * 20,
            unit="ms",
            floor=(floor_all.cpu - floor_one.cpu) * 20,
        ),
        Row(name="… peak memory", figure=all_.peak_mb, unit="MB", floor=floor_all.peak_mb, bar=50),
        Row(
            name="… rounds 451 to 500 of 500",
            figure=late,
            unit="ms",
            floor=early,
            note="floor: rounds 1 to 50",
        ),
    ]


def _per_round(many: Used, one: Used) -> float:
    return (many.wall - one.wall) * 1000 / 50


def _growth() -> tuple[float, float]:
    """Milliseconds from request to request early and late in one long session, as its log tells them."""
    with server([*_shells(500), *ANSWER]) as url, home() as folder:
        env = environment(folder, url)
        config = Path(env["SYLPH_HOME"]) / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text("[limits]\nrounds = 600\n")
        run(TASK, env=env, cwd=folder)
        db = sqlite3.connect(Path(env["SYLPH_HOME"]) / "data" / "events.db")
        times = [ts for (ts,) in db.execute("select ts from event where type = 'model.requested' order by seq")]
        db.close()
    gaps = [after - before for before, after in pairwise(times)]
    return mean(gaps[:50]), mean(gaps[450:500])
