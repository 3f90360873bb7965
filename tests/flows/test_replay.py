"""`sylph replay` and `sylph prove replay`, started for real."""

from pathlib import Path

import pytest
from tests.flows.program import Model, Sylph
from tests.model_server import call, fail, say


@pytest.fixture
async def talked(sylph: Sylph, model: Model) -> Sylph:
    """Somebody has done one task, with a service that was busy at first."""
    (sylph.workspace / "a.txt").write_text("\n".join(f"line {number}" for number in range(20)))
    await model([fail(429, "busy", headers={"retry-after": "0"}), call("read", path="a.txt"), say("Twenty lines.")])
    await sylph.run("how long is a.txt?")
    # Neither the file nor the model is there any more.
    (sylph.workspace / "a.txt").unlink()
    sylph.environ.clear()
    return sylph


async def test_a_session_comes_out_as_it_was(talked: Sylph) -> None:
    done = await talked.run("replay", "last")
    assert (done.code, done.err) == (0, "")
    assert "and 2 prompts came out as they were, byte for byte" in done.out
    found = (await talked.run("replay", "last", "--json")).json
    assert found["events"] == found["matched"] > 15
    assert found["divergence"] is None


async def test_an_export_is_replayed_on_another_machine(talked: Sylph, tmp_path: Path) -> None:
    file = tmp_path / "recorded.ndjson"
    await talked.run("session", "export", "last", "-o", str(file))
    elsewhere = Sylph(tmp_path / "elsewhere", tmp_path)
    elsewhere.home.mkdir()
    assert (await elsewhere.run("replay", str(file))).code == 0


async def test_the_first_difference_is_shown_with_both_sides(talked: Sylph) -> None:
    config = talked.home / "sylph" / "config.toml"
    config.write_text(f"{config.read_text()}\n[limits]\noutput_lines = 10\n")
    done = await talked.run("replay", "last")
    assert done.code == 1
    assert "tool.finished is not the same." in done.out
    assert "  - data.output: " in done.out
    assert "  + data.output: " in done.out
    found = (await talked.run("replay", "last", "--json")).json["divergence"]
    assert found["expected"]["type"] == found["produced"]["type"] == "tool.finished"


async def test_what_cannot_be_replayed_says_why(talked: Sylph) -> None:
    assert "There is no session" in (await talked.run("replay", "nothing")).err
    await talked.run("erase", "last", stdin=b"Twenty lines")
    done = await talked.run("replay", "last")
    assert done.code == 1
    assert "was erased" in done.err


async def test_the_whole_store_and_the_scenarios_are_replayed(talked: Sylph) -> None:
    done = await talked.run("prove", "replay")
    assert done.code == 0, done.out
    head, here, scripted = done.out.splitlines()
    assert head.split()[:3] == ["sessions", "events", "prompts"]
    assert here.split()[0] == "here"
    assert here.split()[4:6] == ["1", "0"]
    assert scripted.split()[5] == "0"
    reports = (await talked.run("prove", "replay", "--last", "0", "--json")).json
    assert reports["here"]["rows"] == []
    assert len(reports["scripted"]["rows"]) >= 9
