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
from sylph.engine.log.lease import SessionLease, holder_pid
from sylph.engine.runtime.runtime import NewSession
from sylph.features.scout import workspace_notes
from sylph.testing import begin_session, play_turn, say, scripted_runtime


async def test_a_session_is_found_by_its_id_the_beginning_of_it_or_as_the_last(home: Path) -> None:
    async with scripted_runtime(home, [say("Hi.")]) as engine:
        with pytest.raises(NotFound, match="no session yet"):
            await engine.find_session("last")
        session = await begin_session(engine, home)
        for name in (session, session[:5], "last"):
            assert (await engine.find_session(name)).id == session
        for name in ("", "0000"):
            with pytest.raises(NotFound):
                await engine.find_session(name)


async def test_a_beginning_that_many_ids_share_names_them(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        sessions = [await begin_session(engine, home) for _ in range(len(ALPHABET) + 1)]
        shared = next(letter for letter in ALPHABET if sum(id.startswith(letter) for id in sessions) > 1)
        with pytest.raises(NotFound) as caught:
            await engine.find_session(shared)
    assert caught.value.trouble.kind == "ambiguous"
    assert all(id in sessions for id in caught.value.trouble.details["candidates"].split())


async def test_the_latest_session_comes_first(home: Path) -> None:
    async with scripted_runtime(home, [say("Hi.")]) as engine:
        one, two = await begin_session(engine, home), await begin_session(engine, home)
        await said(engine, one, "hello")
        assert [summary.id for summary in await engine.list_sessions()] == [one, two]
        assert [task.id for task in await engine.list_tasks()] == [f"{one}.1"]
        assert [task.answer for task in await engine.list_tasks(one)] == ["Hi."]


async def test_a_session_of_a_model_that_is_gone_is_still_listed(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.SetModel(model="nowhere/model"))
        assert (await engine.find_session(session)).window == 0


async def test_a_session_needs_a_folder_to_work_in(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        with pytest.raises(UserError, match="There is no folder"):
            await engine.create_session(NewSession(workspace=home / "nowhere", model="scripted/model"))


async def test_a_session_without_a_readable_first_fact_can_be_looked_at_but_not_worked_with(tmp_path: Path) -> None:
    async with scripted_runtime(tmp_path, [say("Hi.")]) as engine:
        session = await begin_session(engine, tmp_path)
        await engine.log.execute_change(lambda db: db.execute("update event set data = x'00' where seq = 1"))
        assert [summary.id for summary in await engine.list_sessions()] == [session]
        with pytest.raises(UserError) as caught:
            await engine.send(session, commands.Send(text="hello"))
        assert caught.value.trouble.kind == "session_damaged"
        assert [trouble.kind for trouble in await engine.check_store()] == ["record_damaged"]


async def test_a_damaged_message_costs_only_itself(tmp_path: Path) -> None:
    async with scripted_runtime(tmp_path, [say("Hi.")] * 3) as engine:
        session = await begin_session(engine, tmp_path)
        await said(engine, session, "one")
        await engine.log.execute_change(
            lambda db: db.execute("update event set data = x'00' where type = 'input.received'")
        )
        await said(engine, session, "two")
        await engine.send(session, commands.Retry())
        await engine.wait_until_idle(session)
        starts = bodies(await engine.read_events(session), facts.TurnStarted)
    assert [start.retry_of for start in starts] == ["", "", "t2"]


def test_one_lease_at_a_time_and_its_holder_is_known(tmp_path: Path) -> None:
    lease = SessionLease.acquire(tmp_path, "s")
    assert holder_pid(tmp_path, "s") == os.getpid()
    with pytest.raises(SessionBusy, match=str(os.getpid())):
        SessionLease.acquire(tmp_path, "s")
    lease.release()
    assert holder_pid(tmp_path, "s") == 0
    assert list(tmp_path.iterdir()) == []
    SessionLease.acquire(tmp_path, "s").release()


def test_a_lease_dies_with_its_holder(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sylph.engine.log.lease import SessionLease; import os, signal;"
        "SessionLease.acquire(Path(sys.argv[1]), 's'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert holder_pid(tmp_path, "s") == 0
    SessionLease.acquire(tmp_path, "s").release()


def test_two_who_fight_for_a_lease_never_hold_it_both(tmp_path: Path) -> None:
    holding, most = list[int](), list[int]()

    def fight(me: int) -> None:
        for _ in range(200):
            with suppress(SessionBusy):
                lease = SessionLease.acquire(tmp_path, "s")
                holding.append(me)
                most.append(len(holding))
                holding.remove(me)
                lease.release()

    with ThreadPoolExecutor() as threads:
        list(threads.map(fight, range(2)))
    assert set(most) == {1}


def test_a_lock_that_says_nothing_is_still_a_lock(tmp_path: Path) -> None:
    lease = SessionLease.acquire(tmp_path, "s")
    (tmp_path / "s.lock").write_text("")
    assert holder_pid(tmp_path, "s") == -1
    lease.release()


def test_where_no_lock_can_be_made_the_error_says_so(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file")
    with pytest.raises(StoreError) as caught:
        SessionLease.acquire(tmp_path / "locks", "s")
    assert caught.value.trouble.next


async def test_the_scout_tells_where_when_and_how_and_what_the_project_says(home: Path) -> None:
    (home / "AGENTS.md").write_text("Use tabs.")
    async with scripted_runtime(
        home, [say("Hi."), say("Hi."), say("Hi.")], plugins=[workspace_notes.build_plugin()]
    ) as engine:
        session = await begin_session(engine, home, mode="plan")
        first = bodies(await play_turn(engine, session, "hello"), facts.ContextAdded)
        second = bodies(await play_turn(engine, session, "hello"), facts.ContextAdded)
        await engine.send(session, commands.SetMode(mode="ask"))
        third = bodies(await play_turn(engine, session, "hello"), facts.ContextAdded)
    assert [fact.topic for fact in first] == ["workspace", "date", "mode", "project"]
    assert "Use tabs." in first[3].text
    assert (second, [fact.topic for fact in third]) == ([], ["mode"])


async def test_a_project_that_says_nothing_is_fine(home: Path) -> None:
    async with scripted_runtime(home, [say("Hi.")], plugins=[workspace_notes.build_plugin()]) as engine:
        session = await begin_session(engine, home)
        events = await said(engine, session, "hello")
    assert [fact.topic for fact in bodies(events, facts.ContextAdded)] == ["workspace", "date", "mode"]
    assert ended(events).outcome == "finished"
