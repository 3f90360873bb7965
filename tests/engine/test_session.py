"""What may be asked of a session, and what it does with it, whenever it is asked."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from tests.engine.stage import (
    TOOLS,
    Props,
    Stuck,
    bodies,
    ended,
    outcomes,
    results,
    said,
    seen,
    state,
    story,
)
from tests.patience import PATIENCE

from sylph.core import commands, facts, signals
from sylph.core.errors import ErrorReport, NotFound, SylphError, UserError
from sylph.core.plugin import ContextNote, Plugin, PrepareContext
from sylph.core.provider import ModelReply
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.engine.turn.session import QUEUE_LIMIT
from sylph.testing import ScriptedProvider, begin_session, call_tool, call_tools, play_turn, say, scripted_runtime


async def test_what_is_said_to_a_running_turn_reaches_it_between_rounds(home: Path) -> None:
    props, model = Props(), ScriptedProvider([call_tool("hold"), say("Blue then.")])
    async with scripted_runtime(home, model, tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="paint it"))
        await props.began.wait()
        await engine.send(session, commands.Send(text="blue, please"))
        props.go.set()
        events = await story(engine, session)
    assert [message.text for message in model.requests[1].messages][-1] == "blue, please"
    assert outcomes(events) == ["finished"]


async def test_what_is_said_during_the_last_answer_still_reaches_the_turn(home: Path) -> None:
    model = Stuck([say("Done."), say("Blue then.")])
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="paint it"))
        await seen(engine, session, facts.ModelRequested)
        await engine.send(session, commands.Send(text="blue, please"))
        events = await story(engine, session)
    assert sum(isinstance(event.body, facts.ModelResponded) for event in events) == 2


async def test_a_follow_up_waits_for_the_end_of_the_turn(home: Path) -> None:
    props, model = Props(), ScriptedProvider([call_tool("hold"), say("One."), say("Two.")])
    async with scripted_runtime(home, model, tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="first"))
        await props.began.wait()
        await engine.send(session, commands.Send(text="second", delivery="follow"))
        props.go.set()
        events = await story(engine, session)
    assert outcomes(events) == ["finished", "finished"]
    assert [message.text for message in model.requests[2].messages if message.role == "user"] == ["first", "second"]


async def test_a_message_can_be_taken_back_while_it_waits(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="first"))
        await props.began.wait()
        id = await engine.send(session, commands.Send(text="forget it", delivery="follow"))
        await engine.send(session, commands.Withdraw(id=id))
        props.go.set()
        events = await story(engine, session)
        with pytest.raises(NotFound):
            await engine.send(session, commands.Withdraw(id=id))
    assert outcomes(events) == ["finished"]


async def test_only_so_many_messages_may_wait(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="first"))
        await props.began.wait()
        await asyncio.gather(*(engine.send(session, commands.Send(text="more")) for _ in range(QUEUE_LIMIT)))
        with pytest.raises(UserError, match="messages wait already"):
            await engine.send(session, commands.Send(text="too much"))
        props.go.set()
        await engine.wait_until_idle(session)


async def test_a_repeated_send_is_one_message(home: Path) -> None:
    async with scripted_runtime(home, [say("Once.")]) as engine:
        session = await begin_session(engine, home)
        message = commands.Send(text="hello", key="k1")
        first, second = await asyncio.gather(engine.send(session, message), engine.send(session, message))
        assert first == second
        events = await story(engine, session)
        assert await engine.send(session, message) == first
    assert len(bodies(events, facts.InputReceived)) == 1


async def test_messages_sent_at_once_all_arrive_under_their_own_ids(home: Path) -> None:
    model = ScriptedProvider([say("Yes.")] * 20)
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        sends = (engine.send(session, commands.Send(text=f"message {number}")) for number in range(20))
        ids = await asyncio.gather(*sends)
        await engine.wait_until_idle(session)
    assert len(set(ids)) == 20
    shown = [message.text for message in model.requests[-1].messages if message.role == "user"]
    assert sorted(shown) == sorted(f"message {number}" for number in range(20))


async def test_a_message_that_comes_as_the_turn_lets_go_is_not_left_waiting(home: Path) -> None:
    async with scripted_runtime(home, [say("Yes.")] * 40) as engine:
        session = await begin_session(engine, home)
        for number in range(12):
            before = (await engine.find_session(session)).seq
            await engine.send(session, commands.Send(text="again"))
            await seen(engine, session, facts.TurnEnded, after=before)
            for _ in range(number):
                await asyncio.sleep(0)
        await asyncio.wait_for(engine.wait_until_idle(session), PATIENCE)
        assert (await engine.find_session(session)).queue == {}


async def test_a_sender_who_goes_away_still_gets_an_answer_written(home: Path) -> None:
    async with scripted_runtime(home, [say("Yes.")]) as engine:
        session = await begin_session(engine, home)
        sending = asyncio.create_task(engine.send(session, commands.Send(text="hello")))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        assert outcomes(await story(engine, session)) == ["finished"]


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_message_is_refused(home: Path, text: str) -> None:
    async with scripted_runtime(home, []) as engine:
        session = await begin_session(engine, home)
        with pytest.raises(UserError, match="nothing in that message"):
            await engine.send(session, commands.Send(text=text))


async def test_half_characters_in_a_message_do_no_harm(home: Path) -> None:
    async with scripted_runtime(home, [say("Yes.")]) as engine:
        session = await begin_session(engine, home)
        events = await said(engine, session, "a file named \udcff")
    assert bodies(events, facts.InputReceived)[0].text == "a file named ?"
    assert outcomes(events) == ["finished"]


async def test_a_paused_turn_holds_and_goes_on(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        await engine.send(session, commands.Pause())
        props.go.set()
        await state(engine, session, "paused")
        await engine.send(session, commands.Continue())
        events = await story(engine, session)
    assert [fact.event for fact in bodies(events, facts.StateChanged)] == [
        "input",
        "prepared",
        "pause",
        "hold",
        "unpause",
        "finish",
        "close",
    ]


async def test_a_pause_can_be_taken_back_before_it_takes_hold(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        await engine.send(session, commands.Pause())
        await engine.send(session, commands.Continue())
        props.go.set()
        assert outcomes(await story(engine, session)) == ["finished"]


async def test_what_is_not_paused_cannot_go_on(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        with pytest.raises(UserError, match="processing cannot unpause"):
            await engine.send(session, commands.Continue())
        props.go.set()
        assert outcomes(await story(engine, session)) == ["finished"]


async def test_a_pause_before_a_question_holds_first_and_asks_then(home: Path) -> None:
    props = Props()
    script = [call_tool("hold"), call_tool("put", path="a"), say("Done.")]
    async with scripted_runtime(home, script, tools=props.tools) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="do it"))
        asked = await seen(engine, session, facts.Asked)
        await engine.send(session, commands.Answer(id=asked.id, answer="yes"))
        await props.began.wait()
        await engine.send(session, commands.Pause())
        props.go.set()
        await state(engine, session, "paused")
        await engine.send(session, commands.Continue())
        asked = await seen(engine, session, facts.Asked, after=(await engine.find_session(session)).seq - 1)
        await engine.send(session, commands.Answer(id=asked.id, answer="no"))
        assert outcomes(await story(engine, session)) == ["finished"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (commands.Pause(), "wrong_state"),
        (commands.Interrupt(), "wrong_state"),
        (commands.Continue(), "nothing_open"),
        (commands.Compact(), "too_short"),
        (commands.Retry(), "not_found"),
        (commands.Withdraw(id="i9"), "not_found"),
        (commands.Answer(id="t1_q1", answer="yes"), "not_found"),
    ],
)
async def test_what_makes_no_sense_in_an_idle_session_is_refused(
    home: Path, command: commands.Command, kind: str
) -> None:
    async with scripted_runtime(home, []) as engine:
        session = await begin_session(engine, home)
        with pytest.raises(UserError) as caught:
            await engine.send(session, command)
        assert caught.value.trouble.kind == kind
        assert (await engine.find_session(session)).pid == 0


@pytest.mark.parametrize("command", [commands.Retry(), commands.Compact(), commands.Delete()])
async def test_what_needs_a_resting_session_is_refused_while_a_turn_runs(home: Path, command: commands.Command) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        with pytest.raises(UserError, match="while a turn is open"):
            await engine.send(session, command)
        props.go.set()
        await engine.wait_until_idle(session)


async def test_a_retry_starts_from_the_message_and_keeps_the_old_turn_in_the_log(home: Path) -> None:
    model = ScriptedProvider([say("Bad."), say("Good.")])
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "try")
        await engine.send(session, commands.Retry())
        events = await story(engine, session)
    assert [message.text for message in model.requests[1].messages] == ["try"]
    assert [fact.retry_of for fact in bodies(events, facts.TurnStarted)] == ["", "t1"]
    assert [fact.text for fact in bodies(events, facts.ModelResponded)] == ["Bad.", "Good."]


async def test_an_earlier_turn_can_be_retried_with_other_words(home: Path) -> None:
    model = ScriptedProvider([say("1"), say("2"), say("3"), say("again 2")])
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        for text in ("one", "two", "three"):
            await said(engine, session, text)
        await engine.send(session, commands.Retry(turn="t2", text="zwei"))
        await engine.wait_until_idle(session)
    assert [message.text for message in model.requests[3].messages] == ["one", "1", "zwei"]


async def test_a_retry_of_a_turn_on_a_left_branch_goes_back_to_that_branch(home: Path) -> None:
    model = ScriptedProvider([say("1"), say("2"), say("other 1"), say("again 2")])
    async with scripted_runtime(home, model) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "one")
        await said(engine, session, "two")
        for turn in ("t1", "t2"):
            await engine.send(session, commands.Retry(turn=turn))
            await engine.wait_until_idle(session)
    assert [message.text for message in model.requests[3].messages] == ["one", "1", "two"]


async def test_two_retries_at_once_are_one(home: Path) -> None:
    async with scripted_runtime(home, [say("Bad."), say("Good.")]) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "try")
        tried = await asyncio.gather(
            *(engine.send(session, commands.Retry()) for _ in range(2)), return_exceptions=True
        )
        events = await story(engine, session)
    assert [isinstance(one, UserError) for one in tried] == [False, True]
    assert len(bodies(events, facts.TurnStarted)) == 2


async def test_a_title_comes_from_the_first_message_until_somebody_gives_one(home: Path) -> None:
    async with scripted_runtime(home, [say("Hi.")]) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "hello\nthere")
        assert (await engine.find_session(session)).title == "hello there"
        await engine.send(session, commands.Rename(title="Greetings"))
        assert (await engine.find_session(session)).title == "Greetings"


async def test_a_rename_is_kept_even_if_the_one_who_asked_goes_away(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        session = await begin_session(engine, home)
        renaming = asyncio.create_task(engine.send(session, commands.Rename(title="kept")))
        await asyncio.sleep(0)
        renaming.cancel()
        await asyncio.wait([renaming])
        summary = await engine.find_session(session)
    assert (summary.title, summary.pid) == ("kept", 0)


async def test_an_answer_that_was_filtered_is_a_failure_that_says_so(home: Path) -> None:
    async with scripted_runtime(home, [ModelReply(text="I", finish="filtered")]) as engine:
        session = await begin_session(engine, home)
        end = ended(await said(engine, session, "hello"))
    assert (end.outcome, end.trouble and end.trouble.kind) == ("failed", "refusal")


async def test_a_mode_set_while_the_model_thinks_holds_for_its_next_call(home: Path) -> None:
    props = Props()
    async with scripted_runtime(
        home, [call_tool("peek"), call_tool("put", path="a"), say("No.")], tools=props.tools
    ) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        await engine.send(session, commands.SetMode(mode="plan"))
        props.go.set()
        events = await story(engine, session)
    assert "mode `plan`" in results(events)[1].output
    assert not (home / "a").exists()


async def test_another_model_takes_over_in_the_middle_of_a_turn(home: Path) -> None:
    props, model = Props(), ScriptedProvider([call_tool("peek"), say("Done.")])
    async with scripted_runtime(home, model, tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        await engine.send(session, commands.SetModel(model="scripted/other"))
        props.go.set()
        await engine.wait_until_idle(session)
    assert [request.model for request in model.requests] == ["model", "other"]


async def test_a_model_nobody_knows_ends_the_turn_with_what_to_do(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.SetModel(model="nowhere/model"))
        end = ended(await said(engine, session, "hello"))
    assert end.outcome == "failed"
    assert end.trouble
    assert (end.trouble.kind, bool(end.trouble.next)) == ("no_model", True)


async def test_a_deleted_session_is_out_of_sight_until_it_is_restored(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Delete())
        assert await engine.list_sessions() == []
        assert [summary.id for summary in await engine.list_sessions(deleted=True)] == [session]
        with pytest.raises(UserError, match="in the trash"):
            await engine.send(session, commands.Send(text="hello"))
        await engine.send(session, commands.Restore())
        assert [summary.id for summary in await engine.list_sessions()] == [session]


async def test_a_purged_session_leaves_nothing_and_its_id_can_come_back(home: Path) -> None:
    async with scripted_runtime(home, [say("Hi.")]) as engine:
        session = await begin_session(engine, home)
        await said(engine, session, "hello")
        lines = [line async for line in engine.export_session(session)]
        await engine.purge_session(session)
        assert (engine.log.session_ids(), await engine.list_sessions(), engine.log.head(session).seq) == ([], [], 0)
        with pytest.raises(NotFound):
            await engine.purge_session(session)
        assert (await engine.import_session(lines)).session == session


async def test_a_session_at_work_cannot_be_purged(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold"), say("Done.")], tools=props.tools) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="do it"))
        await props.began.wait()
        with pytest.raises(UserError, match="at work"):
            await engine.purge_session(session)
        props.go.set()
        await engine.wait_until_idle(session)


async def test_a_session_nobody_knows_is_an_error_that_helps(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        with pytest.raises(NotFound) as caught:
            await engine.send("nobody", commands.Send(text="hello"))
    assert caught.value.trouble.next


async def test_an_answer_must_be_one_of_the_choices(home: Path) -> None:
    async with scripted_runtime(home, [call_tool("put", path="a"), say("Done.")], tools=TOOLS) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="write"))
        asked = await seen(engine, session, facts.Asked)
        with pytest.raises(UserError, match="not one of the choices"):
            await engine.send(session, commands.Answer(id=asked.id, answer="perhaps"))
        await engine.send(session, commands.Answer(id=asked.id, answer="yes"))
        with pytest.raises(NotFound):
            await engine.send(session, commands.Answer(id=asked.id, answer="no"))
        assert outcomes(await story(engine, session)) == ["finished"]


async def test_two_answers_at_once_and_the_first_counts(home: Path) -> None:
    async with scripted_runtime(home, [call_tool("put", path="a"), say("Done.")], tools=TOOLS) as engine:
        session = await begin_session(engine, home, mode="ask")
        await engine.send(session, commands.Send(text="write"))
        asked = await seen(engine, session, facts.Asked)
        answers = (engine.send(session, commands.Answer(id=asked.id, answer=said)) for said in ("yes", "no"))
        given = await asyncio.gather(*answers, return_exceptions=True)
        events = await story(engine, session)
    assert [isinstance(one, NotFound) for one in given] == [False, True]
    assert [fact.answer for fact in bodies(events, facts.Answered)] == ["yes"]


async def test_questions_of_calls_that_run_side_by_side_come_one_after_the_other(home: Path) -> None:
    props = Props()
    script = [call_tools(("fetch", {"text": "a"}), ("fetch", {"text": "b"})), say("Done.")]
    async with scripted_runtime(home, script, tools=props.tools) as engine:
        session = await begin_session(engine, home, mode="ask")
        events = await play_turn(engine, session, "fetch both")
    assert [fact.detail for fact in bodies(events, facts.Asked)] == ["it reaches a", "it reaches b"]
    assert props.ran == ["a", "b"]


async def test_a_turn_may_not_take_longer_than_its_limit(home: Path) -> None:
    props = Props()
    async with scripted_runtime(home, [call_tool("hold")], tools=props.tools, limits=TurnLimits(seconds=1.5)) as engine:
        session = await begin_session(engine, home)
        events = await said(engine, session, "do it")
    end = ended(events)
    assert end.outcome == "budget"
    assert end.trouble
    assert "took more than" in end.trouble.message
    assert "cut off while it ran" in results(events)[0].output


async def test_a_turn_may_not_have_more_rounds_than_its_limit(home: Path) -> None:
    script = [call_tool("look", path="a")] * 3
    async with scripted_runtime(home, script, tools=TOOLS, limits=TurnLimits(rounds=3)) as engine:
        session = await begin_session(engine, home)
        end = ended(await said(engine, session, "look"))
    assert (end.outcome, end.rounds) == ("budget", 3)


async def test_a_bug_in_a_plugin_ends_the_turn_and_the_next_one_can_work(home: Path) -> None:
    broken = True

    async def prepare(_: PrepareContext) -> list[ContextNote]:
        if broken:
            raise TimeoutError("no answer from the note service")
        return []

    async with scripted_runtime(home, [say("Fine.")], plugins=[Plugin(name="x", prepare=(prepare,))]) as engine:
        session = await begin_session(engine, home)
        assert outcomes(await said(engine, session, "hello")) == ["failed"]
        broken = False
        events = await said(engine, session, "hello")
    assert outcomes(events) == ["failed", "finished"]
    assert bodies(events, facts.TurnEnded)[0].trouble == ErrorReport(
        "bug", "TimeoutError: no answer from the note service"
    )


async def test_a_model_that_goes_in_circles_is_told(home: Path) -> None:
    model = ScriptedProvider([call_tool("look", path="a")] * 5 + [say("I give up.")])
    async with scripted_runtime(home, model, tools=TOOLS) as engine:
        session = await begin_session(engine, home)
        events = await said(engine, session, "look")
    assert [fact.topic for fact in bodies(events, facts.ContextAdded)] == ["circles"]
    assert "same calls" in model.requests[5].messages[-1].text


async def test_a_store_that_fails_in_the_middle_ends_everything_and_says_so(home: Path) -> None:
    props = Props()
    engine = scripted_runtime(home, [call_tool("hold", text="x" * 20_000), say("Done.")], tools=props.tools)
    session = await begin_session(engine, home)
    await engine.send(session, commands.Send(text="do it"))
    await props.began.wait()
    shown = asyncio.create_task(seen(engine, session, signals.SessionFailed))
    await asyncio.sleep(0)
    await engine.log.execute_change(_fill_up)
    props.go.set()
    trouble = (await shown).trouble
    await engine.wait_until_idle(session)
    assert (trouble.kind, bool(trouble.next), (await engine.find_session(session)).pid) == ("store_full", True, 0)
    with pytest.raises(SylphError, match="disk is full"):
        await engine.send(session, commands.Send(text="still there? " * 5_000))
    await engine.close()


def _fill_up(db: sqlite3.Connection) -> None:
    """No further page for this file: what a full disk says, without one."""
    db.execute("pragma max_page_count = 1")
