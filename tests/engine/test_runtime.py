"""The door of the engine: finding sessions, listing them, and one process at a time."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.engine.stage import bodies, ended, said

from sylph.core import commands, facts
from sylph.core.errors import NotFound, SessionBusy, StoreError, UserError
from sylph.core.ids import ALPHABET
from sylph.engine.lease import Lease, holder
from sylph.engine.runtime import NewSession
from sylph.faculties import scout
from sylph.testing import begin, play, runtime, say


async def test_a_session_is_found_by_its_id_the_beginning_of_it_or_as_the_last(home: Path) -> None:
    async with runtime(home, [say("Hi.")]) as engine:
        with pytest.raises(NotFound, match="no session yet"):
            await engine.find("last")
        session = await begin(engine, home)
        for name in (session, session[:5], "last"):
            assert (await engine.find(name)).id == session
        for name in ("", "0000"):
            with pytest.raises(NotFound):
                await engine.find(name)


async def test_a_beginning_that_many_ids_share_names_them(home: Path) -> None:
    async with runtime(home, []) as engine:
        sessions = [await begin(engine, home) for _ in range(len(ALPHABET) + 1)]
        shared = next(letter for letter in ALPHABET if sum(id.startswith(letter) for id in sessions) > 1)
        with pytest.raises(NotFound) as caught:
            await engine.find(shared)
    assert caught.value.trouble.kind == "ambiguous"
    assert all(id in sessions for id in caught.value.trouble.details["candidates"].split())


async def test_the_latest_session_comes_first(home: Path) -> None:
    async with runtime(home, [say("Hi.")]) as engine:
        one, two = await begin(engine, home), await begin(engine, home)
        await said(engine, one, "hello")
        assert [summary.id for summary in await engine.sessions()] == [one, two]
        assert [task.id for task in await engine.tasks()] == [f"{one}.1"]
        assert [task.answer for task in await engine.tasks(one)] == ["Hi."]


async def test_a_session_of_a_model_that_is_gone_is_still_listed(home: Path) -> None:
    async with runtime(home, []) as engine:
        session = await begin(engine, home)
        await engine.send(session, commands.SetModel(model="nowhere/model"))
        assert (await engine.find(session)).window == 0


async def test_a_session_needs_a_folder_to_work_in(home: Path) -> None:
    async with runtime(home, []) as engine:
        with pytest.raises(UserError, match="There is no folder"):
            await engine.create(NewSession(workspace=home / "nowhere", model="scripted/model"))


async def test_a_session_without_a_readable_first_fact_can_be_looked_at_but_not_worked_with(tmp_path: Path) -> None:
    async with runtime(tmp_path, [say("Hi.")]) as engine:
        session = await begin(engine, tmp_path)
        await engine.log.change(lambda db: db.execute("update event set data = x'00' where seq = 1"))
        assert [summary.id for summary in await engine.sessions()] == [session]
        with pytest.raises(UserError) as caught:
            await engine.send(session, commands.Send(text="hello"))
        assert caught.value.trouble.kind == "session_damaged"
        assert [trouble.kind for trouble in await engine.checkup()] == ["record_damaged"]


async def test_a_damaged_message_costs_only_itself(tmp_path: Path) -> None:
    async with runtime(tmp_path, [say("Hi.")] * 3) as engine:
        session = await begin(engine, tmp_path)
        await said(engine, session, "one")
        await engine.log.change(lambda db: db.execute("update event set data = x'00' where type = 'input.received'"))
        await said(engine, session, "two")
        await engine.send(session, commands.Retry())
        await engine.settled(session)
        starts = bodies(await engine.read(session), facts.TurnStarted)
    assert [start.retry_of for start in starts] == ["", "", "t2"]


def test_one_lease_at_a_time_and_its_holder_is_known(tmp_path: Path) -> None:
    lease = Lease.take(tmp_path, "s")
    assert holder(tmp_path, "s") == os.getpid()
    with pytest.raises(SessionBusy, match=str(os.getpid())):
        Lease.take(tmp_path, "s")
    lease.release()
    assert holder(tmp_path, "s") == 0
    assert list(tmp_path.iterdir()) == []
    Lease.take(tmp_path, "s").release()


def test_a_lease_dies_with_its_holder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sylph.engine.lease import Lease; import os, signal;"
        "Lease.take(Path(sys.argv[1]), 's'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert holder(tmp_path, "s") == 0
    Lease.take(tmp_path, "s").release()


def test_two_who_fight_for_a_lease_never_hold_it_both(tmp_path: Path) -> None:
    holding, most = list[int](), list[int]()

    def fight(me: int) -> None:
        for _ in range(200):
            with suppress(SessionBusy):
                lease = Lease.take(tmp_path, "s")
                holding.append(me)
                most.append(len(holding))
                holding.remove(me)
                lease.release()

    with ThreadPoolExecutor() as threads:
        list(threads.map(fight, range(2)))
    assert set(most) == {1}


def test_a_lock_that_says_nothing_is_still_a_lock(tmp_path: Path) -> None:
    lease = Lease.take(tmp_path, "s")
    (tmp_path / "s.lock").write_text("")
    assert holder(tmp_path, "s") == -1
    lease.release()


def test_where_no_lock_can_be_made_the_error_says_so(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file")
    with pytest.raises(StoreError) as caught:
        Lease.take(tmp_path / "locks", "s")
    assert caught.value.trouble.next


async def test_the_scout_tells_where_when_and_how_and_what_the_project_says(home: Path) -> None:
    (home / "AGENTS.md").write_text("Use tabs.")
    async with runtime(home, [say("Hi."), say("Hi."), say("Hi.")], plugins=[scout.plugin()]) as engine:
        session = await begin(engine, home, mode="plan")
        first = bodies(await play(engine, session, "hello"), facts.ContextAdded)
        second = bodies(await play(engine, session, "hello"), facts.ContextAdded)
        await engine.send(session, commands.SetMode(mode="ask"))
        third = bodies(await play(engine, session, "hello"), facts.ContextAdded)
    assert [fact.topic for fact in first] == ["workspace", "date", "mode", "project"]
    assert "Use tabs." in first[3].text
    assert (second, [fact.topic for fact in third]) == ([], ["mode"])


async def test_a_project_that_says_nothing_is_fine(home: Path) -> None:
    async with runtime(home, [say("Hi.")], plugins=[scout.plugin()]) as engine:
        session = await begin(engine, home)
        events = await said(engine, session, "hello")
    assert [fact.topic for fact in bodies(events, facts.ContextAdded)] == ["workspace", "date", "mode"]
    assert ended(events).outcome == "finished"
