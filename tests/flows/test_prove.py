"""`sylph prove`, started for real."""

import asyncio

import msgspec
import pytest
from tests.flows.program import Sylph


@pytest.mark.timeout(180)
async def test_forty_kills_are_survived(sylph: Sylph) -> None:
    process = await sylph.start("prove", "crash", "--points", "40", "--json")
    out, err = await asyncio.wait_for(process.communicate(), 170)
    report = msgspec.json.decode(out)
    assert (process.returncode, report["failures"]) == (0, []), err.decode()
    assert report["tried"] == report["survived"] >= 30
    assert {row["scenario"] for row in report["rows"] if row["unknown"] and row["kind"] != "runner"} == set()


async def test_one_boundary_can_be_named(sylph: Sylph) -> None:
    done = await sylph.run("prove", "crash", "--only", "files:commit:9")
    assert done.code == 0
    assert "1 kill, 1 survived; 0 outcomes unknown; seed 1" in done.out


async def test_a_boundary_that_does_not_exist_is_refused(sylph: Sylph) -> None:
    done = await sylph.run("prove", "crash", "--only", "files:nowhere:1")
    assert done.code == 2
    assert "kinds: commit, effect" in done.err
