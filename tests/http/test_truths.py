"""Answers that say what is so: their status, what was wrong with a request, and what can be done about it."""

import json

import pytest
from tests.http.acting import API, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_parameter_that_there_is_not_is_refused(api: Client) -> None:
    problem = await api.refused("GET", "/sessions?stat=idle&limit=1", 422)
    assert (problem["kind"], problem["details"]) == ("unknown_parameter", {"parameters": "stat"})
    assert "state" in problem["next"][0]


async def test_what_is_wrong_with_a_body_is_told(api: Client) -> None:
    wrong = await api.refused("POST", "/sessions", 400, {"mode": "foo"})
    assert "'ask'" in wrong["detail"] and "'plan'" in wrong["detail"] and "$.mode" in wrong["detail"]
    for body, said in ((b"n\xf6", "not UTF-8"), ("nö".encode(), "not JSON"), (b"[" * 100_000, "")):
        answer = await api.served.client.post(f"{API}/sessions", content=body)
        assert answer.status_code == 400, answer.text
        assert said in answer.json()["detail"]


async def test_a_version_that_is_none_and_one_that_is_old(api: Client) -> None:
    session = await api.begin()
    seen = (await api.ask("GET", f"/sessions/{session}")).headers["etag"]
    garbage = await api.refused("PATCH", f"/sessions/{session}", 412, {"title": "x"}, **{"If-Match": "gar bage"})
    assert "is no ETag" in garbage["detail"]
    assert garbage["details"]["etag"] == seen
    assert (await api.ask("PATCH", f"/sessions/{session}", {"title": "One"}, **{"If-Match": seen})).status_code == 200
    late = await api.refused("PATCH", f"/sessions/{session}", 412, {"title": "Two"}, **{"If-Match": seen})
    assert late["detail"] == "Somebody changed it meanwhile."
    now = (await api.ask("GET", f"/sessions/{session}")).headers["etag"]
    assert late["details"]["etag"] == now
    again = await api.ask("PATCH", f"/sessions/{session}", {"title": "Two"}, **{"If-Match": late["details"]["etag"]})
    assert again.status_code == 200


async def test_what_is_new_is_created_and_what_is_known_is_not(api: Client) -> None:
    (space, *_) = (await api.get("/workspaces"))["items"]
    file = f"/workspaces/{space['id']}/files/text?path=fresh.txt"
    made = await api.ask("PUT", file, {"text": "one\n"})
    assert (made.status_code, made.json()["created"]) == (201, True)
    again = await api.ask("PUT", file, {"text": "two\n"}, **{"If-Match": made.headers["etag"]})
    assert (again.status_code, again.json()["created"]) == (200, False)
    session = await api.begin()
    lines = (await api.ask("GET", f"/sessions/{session}/export")).content
    for query, status in (("", 200), ("?new_id=true", 201)):
        brought = await api.served.client.post(f"{API}/sessions/import{query}", content=lines)
        assert (brought.status_code, brought.json()["known"]) == (status, status == 200)


async def test_trash_and_the_end_of_it_are_told_apart(api: Client) -> None:
    session = await api.begin()
    assert (await api.ask("DELETE", f"/sessions/{session}")).json()["deleted"] is True
    gone = await api.ask("DELETE", f"/sessions/{session}?purge=true")
    assert (gone.status_code, gone.content) == (204, b"")


async def test_lists_are_pages(api: Client) -> None:
    session = await api.begin()
    of = ("questions", "changes", "jobs", "tree")
    paths = [f"/sessions/{session}/{name}" for name in of]
    for path in (*paths, "/roles", "/tools", "/identity", "/providers", "/policy/grants"):
        page = await api.get(path)
        assert set(page) == {"items", "next"} and page["next"] is None, path


async def test_a_command_is_told_as_a_request_too(api: Client) -> None:
    problem = await api.refused("GET", "/sessions/zzzz", 404)
    assert any("sylph session list" in each for each in problem["next"]) == (
        "GET /api/v1/sessions" in problem["next"]
    ), json.dumps(problem)
    nobody = (await api.served.bare.get(f"{API}/sessions")).json()
    assert "POST /api/v1/keys" in nobody["next"]
