"""Turns through the server: approved, refused, changed, steered, stopped, held, repeated, taken back."""

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.http.acting import Client, running, runs
from tests.http.test_sessions import facts
from tests.patience import eventually, waiting

pytestmark = pytest.mark.asyncio(loop_scope="module")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c636060606000000005"
    "0001a5f645400000000049454e44ae426082"
)


def told(name: str, **arguments: object) -> str:
    return f"call {name} {json.dumps(arguments)}"


def work(api: Client) -> Path:
    return api.served.sylph.workspace


async def answer(api: Client, session: str, **said: Any) -> Any:
    asked = await api.asked(session)
    return await api.post(f"/sessions/{session}/answers", {"answers": [{"question": asked["id"], **said}]})


async def test_what_was_approved_is_done(api: Client) -> None:
    session = await api.begin(told("write", path="approved.txt", content="yes\n"))
    asked = await api.asked(session)
    assert (asked["kind"], asked["effect"], asked["calls"][0]["name"]) == ("approval", "write", "write")
    assert json.loads(asked["calls"][0]["arguments"])["path"] == "approved.txt"
    assert "+yes" in asked["detail"]
    assert set(asked["choices"]) >= {"yes", "edit", "no"}
    assert asked["grants"]
    assert not (work(api) / "approved.txt").exists()
    seen = await api.get(f"/sessions/{session}")
    assert (seen["state"], seen["asked"], seen["questions"]) == ("awaiting_user", 1, [asked])
    (heard,) = (await answer(api, session, answer="yes"))["items"]
    assert (heard["result"], heard["by"], heard["via"], heard["answer"]) == ("taken", "user", "tests", "yes")
    await api.done(session)
    assert (work(api) / "approved.txt").read_text() == "yes\n"


async def test_what_a_yes_would_cover_is_told_in_words(api: Client) -> None:
    session = await api.begin(told("shell", command="echo changed > b.txt"))
    asked = await api.asked(session)
    said = 'allow shell: writing to "b.txt" and commands that begin with "echo"'
    assert asked["covers"] == {"session": said, "always": said}
    await answer(api, session, answer="session")
    await api.done(session)
    (*_, first, second) = (await api.get(f"/policy/grants?session={session}"))["items"]
    assert {each["told"].partition(", until")[0] for each in (first, second)} == {
        'allow shell: writing to "b.txt"',
        'allow shell: commands that begin with "echo"',
    }


async def test_a_refusal_reaches_the_model_with_its_reason(api: Client) -> None:
    session = await api.begin(told("write", path="denied.txt", content="no"))
    await answer(api, session, answer="no", reason="use another name")
    await api.done(session)
    turn = await api.get(f"/sessions/{session}/turns/t1")
    (call,) = turn["calls"]
    assert (call["fate"], call["decision"]) == ("denied", "deny")
    assert "use another name" in call["output"]
    assert not (work(api) / "denied.txt").exists()


async def test_a_call_is_changed_before_it_runs(api: Client) -> None:
    session = await api.begin(told("write", path="wrong.txt", content="wrong"))
    asked = await api.asked(session)
    wrongs: list[dict[str, Any]] = [{}, {"arguments": {}}, {"arguments": {"path": 1}}]
    for wrong in wrongs:
        body = {"answers": [{"question": asked["id"], "answer": "edit", **wrong}]}
        assert (await api.refused("POST", f"/sessions/{session}/answers", 422, body))["kind"]
    await answer(api, session, answer="edit", arguments={"path": "right.txt", "content": "right"})
    await api.done(session)
    assert (work(api) / "right.txt").read_text() == "right"
    assert not (work(api) / "wrong.txt").exists()
    assert (await api.get(f"/sessions/{session}/turns/t1"))["calls"][0]["edited"] is True


async def test_of_two_answers_the_first_counts(api: Client) -> None:
    session = await api.begin(told("write", path="raced.txt", content="x"))
    asked = await api.asked(session)
    bodies = [{"answers": [{"question": asked["id"], "answer": said}]} for said in ("yes", "no")]
    raced = await asyncio.gather(*(api.ask("POST", f"/sessions/{session}/answers", body) for body in bodies))
    assert sorted(each.status_code for each in raced) == [200, 409]
    won = next(each.json()["items"][0] for each in raced if each.status_code == 200)
    lost = next(each.json() for each in raced if each.status_code == 409)
    assert (lost["kind"], lost["details"]["answer"], lost["details"]["by"]) == ("answered", won["answer"], "user")
    await api.done(session)
    assert (work(api) / "raced.txt").exists() == (won["answer"] == "yes")
    late = await api.refused("POST", f"/sessions/{session}/answers", 409, bodies[0])
    assert late["details"]["answer"] == won["answer"]


async def test_several_questions_are_answered_at_once(api: Client) -> None:
    both = [["write", {"path": "one.txt", "content": "1"}], ["shell", {"command": "echo 2 > two.txt"}]]
    session = await api.begin(f"calls {json.dumps(both)}")

    async def questions() -> list[dict[str, Any]] | None:
        found = (await api.get(f"/sessions/{session}/questions"))["items"]
        return found if len(found) == 2 else None

    asked = await eventually(questions, "two questions")
    wrong = {
        "answers": [{"question": asked[0]["id"], "answer": "yes"}, {"question": asked[1]["id"], "answer": "perhaps"}]
    }
    await api.refused("POST", f"/sessions/{session}/answers", 422, wrong)
    assert len((await api.get(f"/sessions/{session}/questions"))["items"]) == 2, "none is given where one is wrong"
    body = {"answers": [{"question": each["id"], "answer": "yes"} for each in asked]}
    assert len((await api.post(f"/sessions/{session}/answers", body))["items"]) == 2
    await api.done(session)
    assert ((work(api) / "one.txt").read_text(), (work(api) / "two.txt").read_text()) == ("1", "2\n")


async def test_only_who_may_approve_answers(api: Client) -> None:
    session = await api.begin(told("write", path="never.txt", content="x"))
    asked = await api.asked(session)
    body = {"answers": [{"question": asked["id"], "answer": "yes"}]}
    await (await api.token("read", "chat")).refused("POST", f"/sessions/{session}/answers", 403, body)
    await api.post(f"/sessions/{session}/cancel", {"reason": "enough"})
    assert not (work(api) / "never.txt").exists()


async def test_what_is_cancelled_ends_with_all_it_runs(api: Client) -> None:
    sleep = f"sleep 3{time.time_ns() % 10**9:09}"
    session = await api.begin(told("shell", command=f"{sleep}; echo slept"), mode="trust")
    await runs(sleep.replace(" ", "\0"))
    ended = await api.post(f"/sessions/{session}/cancel", {"reason": "too slow"})
    assert (ended["state"], ended["outcome"]) == ("idle", "cancelled")
    assert not running(sleep.replace(" ", "\0"))
    turn = (await api.get(f"/sessions/{session}/turns"))["items"][0]
    assert (turn["outcome"], turn["trouble"]["message"]) == ("cancelled", "too slow")
    assert (await api.refused("POST", f"/sessions/{session}/cancel", 409, {}))["kind"] == "wrong_state"


async def test_what_a_command_printed_before_it_was_stopped_is_kept(api: Client) -> None:
    sleep = f"sleep 3{time.time_ns() % 10**9:09}"
    session = await api.begin(told("shell", command=f"echo tick 1; echo tick 2; {sleep}"), mode="trust")
    await runs(sleep.replace(" ", "\0"))
    await api.post(f"/sessions/{session}/cancel", {})
    (done,) = [fact["data"] for fact in await facts(api, session) if fact["type"] == "tool.finished"]
    assert "tick 1\ntick 2" in done["output"]
    assert (done["ok"], done["exit"]) == (False, 143), done


async def test_what_a_cancelled_turn_has_not_heard_begins_no_other(api: Client) -> None:
    sleep = f"sleep 3{time.time_ns() % 10**9:09}"
    session = await api.begin(told("shell", command=sleep), mode="trust")
    await runs(sleep.replace(" ", "\0"))
    unheard = await api.post(f"/sessions/{session}/steer", {"text": "not so fast"})
    ended = await api.post(f"/sessions/{session}/cancel", {})
    assert (ended["state"], ended["withdrawn"], ended["follows"]) == ("idle", [unheard["id"]], [])
    assert (await api.get(f"/sessions/{session}"))["queued"] == 0
    assert len((await api.get(f"/sessions/{session}/turns"))["items"]) == 1


@pytest.mark.parametrize("queue", ["keep", "drop"])
async def test_what_waits_for_its_end_has_its_own_turn_unless_it_is_dropped(api: Client, queue: str) -> None:
    sleep = f"sleep 3{time.time_ns() % 10**9:09}"
    session = await api.begin(told("shell", command=sleep), mode="trust")
    await runs(sleep.replace(" ", "\0"))
    waits = await api.post(f"/sessions/{session}/messages", {"text": "then this", "delivery": "follow"})
    ended = await api.post(f"/sessions/{session}/cancel", {"queue": queue})
    kept = queue == "keep"
    assert (ended["withdrawn"], ended["follows"]) == (([], [waits["id"]]) if kept else ([waits["id"]], []))
    done = await api.done(session, 2 if kept else 1)
    assert done["turns"] == (2 if kept else 1)


async def test_a_turn_is_steered_held_and_let_go_on(api: Client) -> None:
    await api.refused("POST", f"/sessions/{await api.begin()}/steer", 409, {"text": "nobody hears it"})
    session = await api.begin(told("shell", command=f"{waiting('steered')}; echo slept"), mode="trust")
    await api.until(session, state="processing")
    steered = await api.post(f"/sessions/{session}/steer", {"text": "call plan {}"})
    queued = await api.post(f"/sessions/{session}/messages", {"text": "later", "delivery": "follow"})
    unwanted = await api.post(f"/sessions/{session}/messages", {"text": "never", "delivery": "follow"})
    assert {row["id"]: row["delivery"] for row in (await api.get(f"/sessions/{session}"))["queue"]} == {
        steered["id"]: "steer",
        queued["id"]: "follow",
        unwanted["id"]: "follow",
    }
    assert (await api.ask("DELETE", f"/sessions/{session}/messages/{unwanted['id']}")).status_code == 204
    await api.refused("DELETE", f"/sessions/{session}/messages/{unwanted['id']}", 404)
    assert (await api.post(f"/sessions/{session}/pause"))["state"] == "pause_requested"
    (work(api) / "steered").touch()
    await api.until(session, state="paused")
    refused = await api.refused("POST", f"/sessions/{session}/pause", 409)
    assert (refused["kind"], refused["detail"]) == ("wrong_state", "The turn is paused already.")
    await api.post(f"/sessions/{session}/resume")
    await api.done(session, 2)
    turns = (await api.get(f"/sessions/{session}/turns"))["items"]
    assert [turn["outcome"] for turn in turns] == ["finished", "finished"]
    first = await api.get(f"/sessions/{session}/turns/t1")
    assert [said["text"] for said in first["messages"] if said["role"] == "user"][1] == "call plan {}"
    assert (await api.get(f"/sessions/{session}/turns/t2"))["output"] == "Heard: later"
    states = (await api.get(f"/sessions/{session}/states"))["items"]
    assert ["pause_requested", "paused", "processing"] in [
        [row["to"] for row in states[at : at + 3]] for at in range(len(states))
    ]
    assert (await api.refused("POST", f"/sessions/{session}/resume", 409))["kind"] == "nothing_open"
    assert (await api.refused("POST", f"/sessions/{session}/drop", 409))["kind"] == "nothing_open"


async def test_a_turn_is_run_again_with_other_words(api: Client) -> None:
    session = await api.begin("say one")
    await api.done(session)
    key = {"Idempotency-Key": "again"}
    again = await api.post(f"/sessions/{session}/retry", {"text": "say two"}, **key)
    await api.done(session, 2)
    repeated = await api.ask("POST", f"/sessions/{session}/retry", {"text": "say two"}, **key)
    assert (repeated.json()["id"], repeated.headers["idempotency-replayed"]) == (again["id"], "true")
    first, second = (await api.get(f"/sessions/{session}/turns"))["items"]
    assert (second["retry_of"], second["text"]) == ("t1", "say two")
    assert first["outcome"] == "finished"
    await api.refused("POST", f"/sessions/{session}/retry", 404, {"turn": "t9"})


async def test_an_undo_is_shown_and_then_done(api: Client) -> None:
    file = work(api) / "undone.txt"
    file.write_text("before\n")
    session = await api.begin(told("write", path="undone.txt", content="after\n"), mode="trust")
    await api.done(session)
    (changed,) = (await api.get(f"/sessions/{session}/changes"))["items"]
    assert (changed["turn"], changed["files"][0]["path"]) == ("t1", "undone.txt")
    assert "-before\n+after" in changed["files"][0]["diff"]
    assert (await api.get(f"/sessions/{session}/turns/t1"))["changes"] == changed
    plan = await api.get(f"/sessions/{session}/undo")
    assert "-after\n+before" in plan["files"][0]["diff"]
    assert file.read_text() == "after\n", "a plan changes nothing"
    done = await api.post(f"/sessions/{session}/undo", {})
    assert (done["restored"], file.read_text()) == (["undone.txt"], "before\n")
    assert (await api.refused("POST", f"/sessions/{session}/undo", 409, {}))["kind"] == "nothing_to_undo"
    await api.post(f"/sessions/{session}/undo", {"redo": True})
    assert file.read_text() == "after\n"
    file.write_text("somebody else's\n")
    assert (await api.refused("POST", f"/sessions/{session}/undo", 409, {}))["kind"] == "undo_blocked"
    await api.post(f"/sessions/{session}/undo", {"force": True})
    assert file.read_text() == "before\n"
    await api.refused("GET", f"/sessions/{session}/undo?turn=t9", 404)


async def test_a_turn_is_read_whole(api: Client) -> None:
    session = await api.begin(told("shell", command="seq 20000"), mode="trust")
    await api.done(session)
    turn = await api.get(f"/sessions/{session}/turns/t1")
    assert [said["role"] for said in turn["messages"] if said["role"] != "note"] == ["user", "assistant", "assistant"]
    (call,) = turn["calls"]
    assert (call["fate"], call["exit"], call["cut"], call["by"]) == ("done", 0, True, "mode")
    assert turn["messages"][-1]["text"] == turn["output"] == "Done."
    whole = await api.ask("GET", f"/sessions/{session}/calls/{call['id']}/output")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert "\n19999\n20000\n" in whole.text


async def test_the_log_is_read_in_pages(api: Client) -> None:
    session = await api.begin("hello")
    await api.done(session)
    read, after = list[dict[str, Any]](), "0"
    while after:
        page = await api.get(f"/sessions/{session}/facts?limit=4&after={after}")
        read += page["items"]
        after = page["next"]
    assert [fact["seq"] for fact in read] == list(range(1, len(read) + 1))
    shown = await api.served.sylph.run("session", "show", session, "--events", "--json")
    assert read == shown.events
    assert await api.get(f"/sessions/{session}/facts/2") == read[1]
    some = await api.get(f"/sessions/{session}/facts?type=turn.started&type=turn.ended&type=no.such")
    assert [fact["type"] for fact in some["items"]] == ["turn.started", "turn.ended"]
    page = await api.get(f"/sessions/{session}/turns?limit=1")
    assert page["next"] is None


async def test_usage_and_context_are_told(api: Client) -> None:
    session = await api.begin("hello")
    await api.done(session)
    used = await api.get(f"/sessions/{session}/usage")
    assert [(row["model"], row["role"], row["requests"]) for row in used["models"]] == [("openai/scripted", "main", 1)]
    assert used["usage"] == used["models"][0]["usage"]
    context = await api.get(f"/sessions/{session}/context")
    parts = {part["part"]: part for part in context["parts"]}
    assert (parts["inputs"]["messages"], parts["answers"]["messages"]) == (1, 1)
    assert parts["system"]["tokens"] > 100
    assert parts["tools"]["messages"] > 5
    assert context["tokens"] > 0


async def test_what_is_old_is_condensed(api: Client) -> None:
    session = await api.begin()
    assert (await api.refused("POST", f"/sessions/{session}/compact", 409))["kind"] == "too_short"
    for turn in range(1, 4):
        await api.post(f"/sessions/{session}/messages", {"text": "on and on and on " * 400})
        await api.done(session, turn)
    before = (await api.get(f"/sessions/{session}/context"))["tokens"]
    after = await api.post(f"/sessions/{session}/compact")
    assert after["compacted_to"] > 0
    assert after["tokens"] < before
    await api.post(f"/sessions/{session}/messages", {"text": "not to be summarised " * 400})
    await api.done(session, 4)
    refused = await api.refused("POST", f"/sessions/{session}/compact", 409)
    assert (refused["kind"], "no usable summary" in refused["detail"]) == ("compaction_failed", True)


async def test_jobs_are_listed_read_and_stopped(api: Client) -> None:
    command = "echo begun; sleep 300"
    session = await api.begin(told("job", action="start", command=command), mode="trust")
    await api.done(session)
    (job,) = (await api.get(f"/sessions/{session}/jobs"))["items"]
    assert (job["state"], job["command"]) == ("running", command)

    async def printed() -> dict[str, Any] | None:
        found = await api.get(f"/sessions/{session}/jobs/{job['id']}/output")
        return found if found["output"] else None

    read = await eventually(printed, "the output of the job")
    assert (read["output"], read["next"]) == ("begun\n", 6)
    assert (await api.get(f"/sessions/{session}/jobs/{job['id']}/output?offset=2&limit=2"))["output"] == "gu"
    stopped = await api.post(f"/sessions/{session}/jobs/{job['id']}/stop")
    assert (stopped["state"], stopped["why"]) == ("ended", "stopped")
    assert (await api.refused("POST", f"/sessions/{session}/jobs/{job['id']}/stop", 409))["kind"] == "wrong_state"
    assert (await api.get(f"/sessions/{session}/jobs/{job['id']}"))["state"] == "ended"


async def test_pictures_go_with_a_message(api: Client) -> None:
    session = await api.begin()
    data = base64.b64encode(PIXEL).decode()
    body = {"text": "look", "attachments": [{"name": "dot.png", "data": data}]}
    await api.post(f"/sessions/{session}/messages", body)
    await api.done(session)
    turn = await api.get(f"/sessions/{session}/turns/t1")
    (image,) = next(said for said in turn["messages"] if said["role"] == "user")["images"]
    assert (image["name"], image["media"]) == ("dot.png", "image/png")
    shown = await api.ask("GET", f"/sessions/{session}/images/{image['digest']}")
    assert (shown.content, shown.headers["content-type"]) == (PIXEL, "image/png")
    for wrong in ("", base64.b64encode(b"text").decode(), base64.b64encode(PIXEL[:40]).decode(), "no base64!"):
        body = {"text": "look", "attachments": [{"name": "x", "data": wrong}]}
        await api.refused("POST", f"/sessions/{session}/messages", 400, body)
    many = {"text": "look", "attachments": [{"name": "dot.png", "data": data}] * 21}
    await api.refused("POST", f"/sessions/{session}/messages", 400, many)


async def test_a_dry_run_changes_nothing_and_nothing_is_no_message(api: Client) -> None:
    session = await api.begin(mode="trust")
    dry = {"text": told("write", path="dry.txt", content="x"), "dry_run": True}
    await api.post(f"/sessions/{session}/messages", dry)
    await api.done(session)
    assert (await api.get(f"/sessions/{session}/turns/t1"))["calls"][0]["dry"] is True
    assert not (work(api) / "dry.txt").exists()
    assert (await api.refused("POST", f"/sessions/{session}/messages", 422, {"text": " "}))["kind"] == "empty_message"


async def test_a_message_is_kept_once_by_its_key_in_either_place(api: Client) -> None:
    session = await api.begin()
    path, key = f"/sessions/{session}/messages", {"Idempotency-Key": "k1"}
    first = await api.post(path, {"text": "once", "key": "k1"})
    again = await api.ask("POST", path, {"text": "once"}, **key)
    assert (again.status_code, again.json()["id"], again.headers["idempotency-replayed"]) == (202, first["id"], "true")
    assert (await api.refused("POST", path, 422, {"text": "twice"}, **key))["kind"] == "key_reused"
    assert (await api.refused("POST", path, 422, {"text": "x", "key": "k2"}, **key))["kind"] == "two_keys"
    other = await api.token("chat", "read")
    assert (await other.post(path, {"text": "once"}, **key))["id"] == first["id"], "a key of the session itself"
    assert (await other.refused("POST", path, 422, {"text": "else", "key": "k1"}))["kind"] == "key_reused"
    await api.done(session)
    assert [fact["type"] for fact in await facts(api, session)].count("input.received") == 1


async def test_a_turn_that_a_crash_left_open_is_given_up(api: Client) -> None:
    sleep = f"sleep 3{time.time_ns() % 10**9:09}"
    session = await api.begin(mode="trust")
    told_it = told("shell", command=f"{sleep}; echo slept")
    beside = await api.served.sylph.start("run", "-s", session, told_it, SYLPH_ALONE="1")
    await runs(sleep.replace(" ", "\0"))
    busy = await api.refused("POST", f"/sessions/{session}/messages", 409, {"text": "may I?"})
    assert busy["kind"] == "session_busy"
    assert (await api.get(f"/sessions/{session}"))["interrupted"] is False
    beside.kill()
    await beside.communicate()
    seen = await api.get(f"/sessions/{session}")
    assert (seen["interrupted"], seen["open_turn"]) == (True, "t1")
    crashed = await api.refused("POST", f"/sessions/{session}/cancel", 409, {})
    assert "POST …/drop gives it up" in crashed["next"]
    assert (await api.post(f"/sessions/{session}/drop"))["state"] == "idle"
    assert not running(sleep.replace(" ", "\0"))
    assert (await api.get(f"/tasks/{session}.1"))["outcome"] == "cancelled"
