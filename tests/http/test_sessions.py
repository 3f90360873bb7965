"""Sessions through the server: made, listed, changed, put aside, thrown away, copied, carried elsewhere."""

import asyncio
from typing import Any

import pytest
from tests.http.acting import MODEL, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")
EVERYTHING = {
    "model": MODEL,
    "mode": "plan",
    "title": "All of it",
    "label": "house",
    "budget": 500_000,
    "sandbox": True,
    "roles": {"judge": "openai/small"},
}


async def test_a_session_is_what_was_asked_for(api: Client) -> None:
    made = await api.post("/sessions", {**EVERYTHING, "workspace": str(api.served.sylph.workspace)})
    seen = await api.get(f"/sessions/{made['id']}")
    assert {name: seen[name] for name in EVERYTHING} == EVERYTHING
    assert seen["workspace"] == str(api.served.sylph.workspace.resolve())
    assert (seen["state"], seen["questions"], seen["queue"], seen["plan"]) == ("idle", [], [], [])
    assert seen["budgets"][0]["cap"] == 500_000
    assert (await api.get(f"/sessions/{made['id'][:8]}"))["id"] == made["id"]


@pytest.mark.parametrize(
    ("wrong", "status", "kind"),
    [
        ({"mode": "wild"}, 400, "bad_body"),
        ({"nonsense": 1}, 400, "bad_body"),
        ({"budget": 0}, 400, "bad_body"),
        ({"budget": 10**30}, 400, "bad_body"),
        ({"workspace": "/nowhere/at/all"}, 422, "no_workspace"),
        ({"workspace": "relative"}, 422, "no_workspace"),
        ({"workspace": "/" + "x" * 300}, 422, "no_workspace"),
        ({"workspace": "/a\0b"}, 422, "no_workspace"),
        ({"model": "nobody/knows"}, 409, "no_model"),
        ({"label": "two words"}, 422, "bad_label"),
        ({"roles": {"king": MODEL}}, 400, "usage"),
        ({"mode": "sandbox", "sandbox": False}, 400, "usage"),
    ],
)
async def test_what_no_session_can_be(api: Client, wrong: dict[str, Any], status: int, kind: str) -> None:
    before = len((await api.get("/sessions?limit=200"))["items"])
    assert (await api.refused("POST", "/sessions", status, wrong))["kind"] == kind
    assert len((await api.get("/sessions?limit=200"))["items"]) == before


async def test_an_edit_knows_whether_somebody_was_faster(api: Client) -> None:
    session = await api.begin("hello")
    await api.done(session)
    seen = await api.ask("GET", f"/sessions/{session}")
    tag = seen.headers["etag"]
    assert (await api.ask("GET", f"/sessions/{session}", **{"If-None-Match": tag})).status_code == 304
    edit = {"title": "New", "pinned": True, "roles": {"judge": "openai/small"}, "budget": 70}
    edited = await api.ask("PATCH", f"/sessions/{session}", edit, **{"If-Match": tag})
    assert edited.status_code == 200
    assert {name: edited.json()[name] for name in edit} == edit
    problem = await api.refused("PATCH", f"/sessions/{session}", 412, {"title": "Late"}, **{"If-Match": tag})
    assert problem["kind"] == "changed"
    await api.post(f"/sessions/{session}/messages", {"text": "and on"})
    await api.done(session, 2)
    # What a turn adds is no edit.
    late = await api.ask("PATCH", f"/sessions/{session}", {"budget": None}, **{"If-Match": edited.headers["etag"]})
    assert (late.status_code, late.json()["budget"]) == (200, None)


async def test_only_who_may_approve_loosens_anything(api: Client) -> None:
    session = (await api.post("/sessions", {"mode": "ask", "budget": 100}))["id"]
    chatting, approving = await api.token("read", "chat"), await api.token("chat", "approve")
    for wish in ({"mode": "trust"}, {"sandbox": False}, {"budget": 200}, {"budget": None}):
        assert (await chatting.refused("PATCH", f"/sessions/{session}", 403, wish))["kind"] == "forbidden"
        await chatting.refused("POST", "/sessions", 403, {"mode": "trust"})
        await chatting.refused("POST", "/tasks", 403, {"text": "x", "sandbox": False})
    tighter = await chatting.ask("PATCH", f"/sessions/{session}", {"mode": "plan", "budget": 50})
    assert (tighter.status_code, tighter.json()["mode"]) == (200, "plan")
    looser = await approving.ask("PATCH", f"/sessions/{session}", {"mode": "trust", "sandbox": False, "budget": None})
    assert (looser.json()["mode"], looser.json()["sandbox"], looser.json()["budget"]) == ("trust", False, None)
    await approving.refused("DELETE", f"/sessions/{session}?purge=true", 403)
    await (await api.token("read")).refused("POST", f"/sessions/{session}/messages", 403, {"text": "x"})
    await approving.ask("PATCH", f"/sessions/{session}", {"mode": "ask"})
    await (await api.token("hook")).refused("PATCH", f"/sessions/{session}", 403, {"mode": "trust"})


async def test_pages_show_each_session_once_while_sessions_change(api: Client) -> None:
    made = [await api.begin(label="paged") for _ in range(7)]
    first = await api.get("/sessions?label=paged&limit=3")
    assert [one["id"] for one in first["items"]] == made[:-4:-1]
    await api.post(f"/sessions/{made[0]}/messages", {"text": "up I go"})
    await api.done(made[0])
    await api.begin(label="paged")
    second = await api.get(f"/sessions?label=paged&limit=3&cursor={first['next']}")
    third = await api.get(f"/sessions?label=paged&limit=3&cursor={second['next']}")
    seen = [one["id"] for page in (first, second, third) for one in page["items"]]
    assert seen == made[::-1]
    assert third["next"] is None
    anew = await api.get("/sessions?label=paged")
    assert anew["items"][1]["id"] == made[0]


@pytest.mark.parametrize("cursor", ["x", "1", "1.2", "..", "-1.2.x", "9" * 30 + ".1.x", "1.2."])
async def test_garbage_is_no_cursor(api: Client, cursor: str) -> None:
    assert (await api.refused("GET", f"/sessions?cursor={cursor}", 400))["kind"] == "bad_cursor"


async def test_lists_are_filtered(api: Client) -> None:
    one, two, three = [await api.begin(label="kept") for _ in range(3)]

    async def listed(query: str) -> list[str]:
        return [row["id"] for row in (await api.get(f"/sessions?label=kept&{query}"))["items"]]

    await api.ask("PATCH", f"/sessions/{one}", {"pinned": True})
    assert (await api.post(f"/sessions/{two}/archive"))["archived"] is True
    assert (await api.ask("DELETE", f"/sessions/{three}")).json()["deleted"] is True
    assert await listed("") == [one]
    assert await listed("archived=true") == [two]
    assert await listed("deleted=true") == [three]
    assert (await listed("pinned=true"), await listed("pinned=false")) == ([one], [])
    assert (await listed("state=idle"), await listed("state=paused")) == ([one], [])
    assert await listed("workspace=/elsewhere") == []
    assert (await api.post(f"/sessions/{two}/unarchive"))["archived"] is False
    assert (await api.post(f"/sessions/{three}/restore"))["deleted"] is False
    assert set(await listed("")) == {one, two, three}
    await api.refused("GET", "/sessions?state=wild", 422)
    await api.refused("GET", "/sessions?limit=0", 422)


async def test_what_is_in_the_trash_is_left_alone_until_it_is_back_or_gone(api: Client) -> None:
    session = await api.begin("keep this")
    await api.done(session)
    await api.ask("DELETE", f"/sessions/{session}")
    assert (await api.get(f"/sessions/{session}"))["deleted"] is True
    for method, path, body in (
        ("POST", "/messages", {"text": "x"}),
        ("PATCH", "", {"title": "x"}),
        ("POST", "/archive", None),
        ("POST", "/retry", {}),
    ):
        assert (await api.refused(method, f"/sessions/{session}{path}", 409, body))["kind"] == "deleted"
    await api.post(f"/sessions/{session}/restore")
    assert (await api.refused("POST", f"/sessions/{session}/restore", 409))["kind"] == "wrong_state"
    assert (await api.ask("DELETE", f"/sessions/{session}?purge=true")).status_code == 204
    await api.refused("GET", f"/sessions/{session}", 404)


async def test_words_are_found_in_all_sessions(api: Client) -> None:
    one = await api.begin("the purple parrot sings", title="Birds")
    two = await api.begin("a parrot in purple")
    await api.done(one)
    await api.done(two)
    found = await api.get("/sessions/search?q=purple%20parrot&role=user")
    assert {row["session"] for row in found["items"]} == {one, two}
    assert {row["title"] for row in found["items"] if row["session"] == one} == {"Birds"}
    phrase = await api.get('/sessions/search?q="purple%20parrot"&role=user')
    assert [row["session"] for row in phrase["items"]] == [one]
    first = await api.get("/sessions/search?q=parrot&limit=1")
    second = await api.get(f"/sessions/search?q=parrot&limit=1&cursor={first['next']}")
    assert first["items"] != second["items"]
    assert (await api.refused("GET", "/sessions/search?q=%20", 400))["kind"] == "nothing_wanted"
    await api.refused("GET", "/sessions/search", 422)


async def test_a_fork_goes_its_own_way(api: Client) -> None:
    session = await api.begin("hello")
    await api.done(session)
    at = next(fact["seq"] for fact in await facts(api, session) if fact["type"] == "turn.ended")
    child = await api.post(f"/sessions/{session}/fork", {"at": at, "title": "Another way"})
    assert (child["parent"], child["forked_at"], child["title"]) == (session, at, "Another way")
    grandchild = await api.post(f"/sessions/{child['id']}/fork", {})
    tree = (await api.get(f"/sessions/{grandchild['id']}/tree"))["items"]
    assert [(node["id"], node["parent"]) for node in tree] == [
        (session, ""),
        (child["id"], session),
        (grandchild["id"], child["id"]),
    ]
    await api.refused("POST", f"/sessions/{session}/fork", 400, {"at": 10_000})
    await api.refused("POST", f"/sessions/{session}/fork", 400, {"at": 0})


async def test_an_export_is_the_command_lines_and_comes_in_again(api: Client) -> None:
    session = await api.begin('call shell {"command": "seq 3000"}', mode="trust")
    await api.done(session)
    exported = await api.ask("GET", f"/sessions/{session}/export")
    assert exported.headers["content-type"] == "application/x-ndjson"
    assert exported.text == (await api.served.sylph.run("session", "export", session)).out
    client = api.served.client

    async def bring(data: bytes, query: str = "", **headers: str) -> Any:
        return await client.post(f"/api/v1/sessions/import{query}", content=data, headers=headers)

    assert (await bring(exported.content)).json()["known"] is True
    key = {"Idempotency-Key": "once"}
    fresh = (await bring(exported.content, "?new_id=true", **key)).json()
    again = await bring(exported.content, "?new_id=true", **key)
    assert (again.json(), again.headers["idempotency-replayed"]) == (fresh, "true")
    assert (await bring(exported.content + b"\n", "?new_id=true", **key)).json()["kind"] == "key_reused"
    assert fresh["session"] != session
    await client.delete(f"/api/v1/sessions/{session}?purge=true")
    back = await bring(exported.content)
    assert (back.status_code, back.json()["known"]) == (201, False)
    assert (await api.ask("GET", f"/sessions/{session}/export")).text == exported.text
    assert (await api.ask("GET", f"/sessions/{session}/calls/t1_c1/output")).text.startswith("1\n2\n3\n")
    for wrong in (exported.content[:-100], exported.content.replace(b"seq 3000", b"seq 4000"), b"", b"\xff\n", b"{}"):
        assert (await bring(wrong)).status_code == 422
    assert (await (await api.token("chat")).ask("POST", "/sessions/import")).status_code == 403


async def test_a_person_has_seen_it(api: Client) -> None:
    session = await api.begin("news")
    seen = await api.done(session)
    assert seen["unread"] is True
    read = (await api.ask("PATCH", f"/sessions/{session}", {"seen": seen["seq"]})).json()
    assert (read["unread"], read["updated"]) == (False, seen["updated"])


READING = (
    *("", "/tree", "/export", "/questions", "/undo", "/turns", "/turns/t1", "/changes", "/calls/t1_c1/output"),
    *("/images/abc", "/facts", "/facts/1", "/states", "/usage", "/context", "/jobs", "/jobs/x", "/jobs/x/output"),
)
ACTING = (
    *("/archive", "/unarchive", "/restore", "/fork", "/messages", "/retry", "/cancel", "/pause", "/resume", "/drop"),
    *("/compact", "/undo", "/jobs/x/stop"),
)


async def test_what_is_not_there_is_not_found(api: Client) -> None:
    for path in READING:
        assert (await api.refused("GET", f"/sessions/nobody{path}", 404))["kind"] == "not_found"
    for path in ACTING:
        assert (await api.refused("POST", f"/sessions/nobody{path}", 404, {}))["kind"] == "not_found"
    for method, path in (("PATCH", ""), ("DELETE", ""), ("DELETE", "?purge=true"), ("DELETE", "/messages/i1")):
        await api.refused(method, f"/sessions/nobody{path}", 404, {})
    there = await api.begin()
    inside = ("/turns/t9", "/calls/t9_c9/output", "/images/ab", "/facts/99", "/jobs/x", "/jobs/x/output", "/jobs/../x")
    for path in inside:
        await api.refused("GET", f"/sessions/{there}{path}", 404)
    for path in ("/tasks/nobody.1", f"/tasks/{there}.1", f"/tasks/{there}", "/tasks/1", f"/tasks/{there}.99999999999"):
        await api.refused("GET", path, 404)
    await api.refused("POST", f"/sessions/{there}/answers", 404, {"answers": [{"question": "t1_q1", "answer": "yes"}]})


async def test_garbage_is_told_what_it_is(api: Client) -> None:
    session = await api.begin()
    bodies = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'"text"', b'{"text": 1}', b'{"text": "\\ud800"}', b"[" * 5000]
    for path in ("/messages", "/steer", "/retry", "/answers", "/undo", "/fork", "/cancel"):
        for body in bodies:
            answer = await api.served.client.post(f"/api/v1/sessions/{session}{path}", content=body)
            assert answer.status_code < 500, (path, body, answer.text)
    answers = await asyncio.gather(*(api.ask("GET", f"/sessions/{odd}") for odd in ("%00", "%ff", "a" * 200, "%2e%2e")))
    assert {answer.status_code for answer in answers} <= {404, 422}


async def facts(api: Client, session: str) -> list[dict[str, Any]]:
    return (await api.get(f"/sessions/{session}/facts?limit=1000"))["items"]
