"""`sylph prove`, started for real."""

import msgspec
import pytest
from tests.flows.program import Sylph


@pytest.mark.lengthy
async def test_forty_kills_are_survived(sylph: Sylph) -> None:
    process = await sylph.start("prove", "crash", "--points", "40", "--json")
    out, err = await process.communicate()
    report = msgspec.json.decode(out)
    assert (process.returncode, report["failures"]) == (0, []), err.decode()
    assert report["tried"] == report["survived"] >= 30
    assert {row["scenario"] for row in report["rows"] if row["unknown"] and row["kind"] != "runner"} == set()


@pytest.mark.lengthy
async def test_a_cap_holds_for_agents_that_are_killed(sylph: Sylph) -> None:
    process = await sylph.start(
        *("prove", "budget", "--agents", "40", "--processes", "4", "--kills", "4", "--json"),
    )
    out, err = await process.communicate()
    told = msgspec.json.decode(out)
    assert (process.returncode, told["ok"], told["report"]["problems"]) == (0, True, []), err.decode()
    report = told["report"]
    assert report["kills"] == 4
    assert report["killed_calls"] >= 4
    assert 0.3 * report["cap"] < report["bill"]["money"] <= report["counted"] <= report["cap"]
    assert not report["scratch"]


async def test_one_boundary_can_be_named(sylph: Sylph) -> None:
    done = await sylph.run("prove", "crash", "--only", "files:commit:9")
    assert done.code == 0
    assert "1 kill, 1 survived; 0 outcomes unknown; seed 1" in done.out


async def test_a_boundary_that_does_not_exist_is_refused(sylph: Sylph) -> None:
    done = await sylph.run("prove", "crash", "--only", "files:nowhere:1")
    assert done.code == 2
    assert "kinds: commit, effect" in done.err
