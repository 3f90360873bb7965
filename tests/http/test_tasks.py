"""Tasks through the server: one message, one answer."""

import time

import pytest
from tests.http.acting import Client, running, runs
from tests.http.test_turns import told

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_task_is_done_and_answered_for(api: Client) -> None:
    task = await api.post("/tasks?wait=100", {"text": "say it", "title": "A task", "label": "tasks"})
    assert (task["outcome"], task["output"], task["turn"]) == ("finished", "Heard: say it", "t1")
    assert task["id"] == f"{task['session']}.1"
    assert await api.get(f"/tasks/{task['id']}") == task
    session = await api.get(f"/sessions/{task['session']}")
    assert (session["title"], session["label"], session["turns"]) == ("A task", "tasks", 1)


async def test_a_task_that_asks_is_answered_for_at_once(api: Client) -> None:
    task = await api.post("/tasks?wait=100", {"text": told("write", path="asked.txt", content="x"), "mode": "ask"})
    assert task["outcome"] == "open"
    (asked,) = task["questions"]
    body = {"answers": [{"question": asked["id"], "answer": "yes"}]}
    await api.post(f"/sessions/{task['session']}/answers", body)
    assert (await api.get(f"/tasks/{task['id']}?wait=0"))["outcome"] in ("open", "finished")
    await api.done(task["session"])
    done = await api.get(f"/tasks/{task['id']}")
    assert (done["outcome"], done["output"]) == ("finished", "Done.")


async def test_a_cancelled_task_has_ended_with_all_it_ran(api: Client) -> None:
    sleep = f"sleep 3{time.time_ns() % 10**9:09}"
    task = await api.post("/tasks", {"text": told("shell", command=f"{sleep}; echo slept"), "mode": "trust"})
    await runs(sleep.replace(" ", "\0"))
    assert (await api.get(f"/tasks/{task['id']}"))["outcome"] == "open"
    ended = await api.post(f"/tasks/{task['id']}/cancel")
    assert (ended["outcome"], ended["trouble"]["message"]) == ("cancelled", "the task was cancelled")
    assert not running(sleep.replace(" ", "\0"))
    assert (await api.refused("POST", f"/tasks/{task['id']}/cancel", 409))["kind"] == "wrong_state"


async def test_tasks_are_listed_the_latest_first_and_a_copy_is_none(api: Client) -> None:
    made = [(await api.post("/tasks?wait=100", {"text": f"number {at}"}))["id"] for at in range(3)]
    session = made[0].partition(".")[0]
    await api.post(f"/sessions/{session}/messages", {"text": "one more"})
    await api.done(session, 2)
    copy = (await api.post(f"/sessions/{session}/fork", {}))["id"]
    seen, cursor = list[str](), ""
    while True:
        page = await api.get(f"/tasks?limit=2&cursor={cursor}")
        seen += [task["id"] for task in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen[:4] == [f"{session}.2", *made[::-1]]
    assert len(seen) == len(set(seen))
    assert [task["id"] for task in (await api.get(f"/tasks?session={session}"))["items"]] == [f"{session}.2", made[0]]
    assert (await api.get(f"/tasks?session={copy}"))["items"] == []
    await api.refused("GET", "/tasks?cursor=x", 400)


async def test_a_task_that_waits_is_taken_back(api: Client) -> None:
    session = await api.begin(told("shell", command="sleep 300"), mode="trust")
    await api.until(session, state="processing")
    await api.post(f"/sessions/{session}/messages", {"text": "then this", "delivery": "follow"})
    waiting = await api.get(f"/tasks/{session}.2")
    assert (waiting["outcome"], waiting["text"]) == ("queued", "then this")
    await api.post(f"/sessions/{session}/messages", {"text": "and that", "delivery": "follow"})
    await api.post(f"/sessions/{session}/messages", {"text": "a hint"})
    assert (await api.get(f"/tasks/{session}.3"))["text"] == "and that"
    await api.refused("GET", f"/tasks/{session}.4", 404)
    assert (await api.post(f"/tasks/{session}.2/cancel"))["outcome"] == "cancelled"
    assert [row["text"] for row in (await api.get(f"/sessions/{session}"))["queue"]] == ["and that", "a hint"]
    await api.post(f"/sessions/{session}/cancel", {})


async def test_nothing_is_no_task(api: Client) -> None:
    assert (await api.refused("POST", "/tasks", 422, {"text": "  "}))["kind"] == "empty_message"
    await api.refused("POST", "/tasks", 400, {})
    await api.refused("POST", "/tasks?wait=601", 422, {"text": "x"})
    await api.refused("POST", "/tasks", 400, {"text": "x", "attachments": [{"name": "x", "data": "eA=="}]})
