"""`sylph diagnose`, started for real: on a session that is well, one that was killed, one that somebody was at."""

import sqlite3
from contextlib import closing

from tests.flows.program import Model, Sylph, killed
from tests.model_server import call, say
from tests.patience import eventually, waiting

HELD = f"echo begun >> journal; {waiting('go')}; exit 3"


async def test_a_session_that_is_well(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.txt").write_text("one line")
    await model([call("read", path="a.txt"), say("One line.")])
    await sylph.run("how long is a.txt?")
    shown = await sylph.run("diagnose", "last")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines()[-1].endswith(": nothing is wrong.")
    assert all(row.startswith("✓ ") for row in shown.out.splitlines()[:-1])
    assert "2 prompts came out byte for byte" in shown.out
    told = (await sylph.run("diagnose", "last", "--json")).json
    assert told["ok"] is True
    assert {one["state"] for one in told["findings"]} == {"ok"}


async def test_a_session_that_was_killed(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=HELD), say("It ended with 3.")])
    process = await sylph.start("--json", "--mode", "trust", "do it")
    await eventually((sylph.workspace / "journal").exists, "the command")
    live = await sylph.run("diagnose", "last")
    assert f"Process {process.pid} works on this session" in live.out
    assert "t1_c1 (shell) runs now" in live.out
    await killed(process)
    (session,) = [one["id"] for one in (await sylph.run("session", "list", "--json")).json]
    shown = await sylph.run("diagnose", session)
    assert shown.code == 0
    assert "! turns       t1 was interrupted and is not finished." in shown.out
    assert "· effects     t1_c1 (shell) had started when its process died: its command still runs" in shown.out
    assert f"→ sylph resume {session}" in shown.out
    assert shown.out.splitlines()[-1] == f"{session}: 0 broken, 1 warning."
    (sylph.workspace / "go").touch()
    await sylph.run("resume", session)
    await process.communicate()
    after = (await sylph.run("diagnose", session, "--json")).json
    assert {(one["check"], one["state"]) for one in after["findings"] if one["state"] != "ok"} == {("turns", "note")}


async def test_a_session_that_somebody_was_at(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    await sylph.run("hello")
    with closing(sqlite3.connect(sylph.home / "sylph" / "data" / "events.db")) as db:
        db.execute("delete from event where type = 'turn.ended'")
        db.commit()
    shown = await sylph.run("diagnose", "last")
    assert shown.code == 1
    assert "✗ log " in shown.out
    told = await sylph.run("diagnose", "last", "--json")
    assert (told.code, told.json["ok"]) == (1, False)


async def test_without_an_id_a_list_is_shown_where_there_is_a_terminal(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    await sylph.run("hello")
    assert (await sylph.run("diagnose")).code == 2
    terminal = await sylph.open("diagnose")
    await terminal.see("number, text to filter")
    terminal.type("1\n")
    await terminal.see("nothing is wrong.")
    assert await terminal.end() == 0
