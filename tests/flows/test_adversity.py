"""What can go wrong around Sylph: a model that hangs, a full disk, a busy store, a killed runner, a second Sylph."""

import asyncio
import math
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.flows.program import Model, Sylph, finished
from tests.flows.test_resume import until_exists
from tests.model_server import call, say


def configure(sylph: Sylph, text: str) -> None:
    (sylph.home / "sylph" / "config.toml").write_text(f"probe = false\n{text}\n")


async def facts(sylph: Sylph, kind: str) -> list[dict[str, object]]:
    shown = await sylph.run("session", "export", "last")
    return [event["data"] for event in shown.events if event.get("type") == kind]


async def test_a_model_that_hangs_is_given_up_and_the_turn_can_be_tried_again(sylph: Sylph, model: Model) -> None:
    configure(sylph, "[limits]\nfirst_seconds = 2.0\nretries = 1")
    never = say("too late", stall=math.inf)
    server = await model([never, never, say("Here I am.")])
    done = await sylph.run("are you there?")
    assert (done.code, len(server.requests)) == (4, 2)
    assert "`limits.first_seconds` in the config" in done.err
    assert [end["outcome"] for end in await facts(sylph, "turn.ended")] == ["failed"]
    configure(sylph, "")
    assert (await sylph.run("retry")).out == "Here I am.\n"


async def test_a_store_that_is_busy_for_a_while_is_waited_for(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command="echo once >> journal"), say("Done.")])
    await sylph.run("session", "list")
    store = sqlite3.connect(sylph.home / "sylph" / "data" / "events.db", isolation_level=None)
    store.execute("begin immediate")
    process = await sylph.start("--mode", "trust", "go")
    await asyncio.sleep(1.5)
    assert server.requests == []
    store.execute("rollback")
    store.close()
    done = await finished(process)
    assert (done.code, done.out) == (0, "Done.\n"), done.err
    assert (sylph.workspace / "journal").read_text() == "once\n"


async def test_a_killed_runner_is_an_unknown_outcome_and_the_turn_goes_on(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="echo once >> journal; sleep 300"), say("I do not know how it ended.")])
    process = await sylph.start("--mode", "trust", "go")
    await until_exists(sylph.workspace, "journal")
    (journal,) = (sylph.home / "sylph" / "data" / "runs").glob("*.run")
    intent = msgspec.json.decode(journal.read_bytes().splitlines()[0])["intent"]
    os.kill(intent["runner"], signal.SIGKILL)
    done = await finished(process)
    assert (done.code, done.out) == (0, "I do not know how it ended.\n"), done.err
    (result,) = await facts(sylph, "tool.finished")
    assert (result["ok"], str(result["output"]).startswith("Outcome unknown")) == (False, True)
    assert (sylph.workspace / "journal").read_text() == "once\n"


async def test_two_at_once_in_one_home_do_not_disturb_each_other(sylph: Sylph, model: Model) -> None:
    gate = asyncio.Event()
    server = await model({"one": [say("First.", hold=gate)], "two": [say("Second.", hold=gate)]})
    both = [await sylph.start(word) for word in ("one", "two")]
    await server.until(lambda: len(server.requests) == 2)
    gate.set()
    done = await asyncio.gather(*(finished(each) for each in both))
    assert [(each.code, each.out) for each in done] == [(0, "First.\n"), (0, "Second.\n")]
    assert (await sylph.run("verify")).code == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here: a really full disk was NOT tried")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def make_room(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=30m", str(disk)], check=True)


async def test_on_a_full_disk_nothing_is_lost_and_with_room_it_goes_on(sylph: Sylph, model: Model, disk: Path) -> None:
    sylph.environ["SYLPH_DATA"] = str(disk / "data")
    await model([call("shell", command="echo once >> journal; seq 300000"), say("I do not know how it ended.")])
    full = await sylph.run("--mode", "trust", "count")
    assert (full.code, "The disk is full" in full.err, "sylph resume" in full.err) == (7, True, True)
    make_room(disk)
    more = await sylph.run("resume")
    assert (more.code, more.out) == (0, "I do not know how it ended.\n")
    (result,) = await facts(sylph, "tool.finished")
    assert str(result["output"]).startswith("Outcome unknown")
    assert (sylph.workspace / "journal").read_text() == "once\n"
    assert (await sylph.run("verify")).code == 0
