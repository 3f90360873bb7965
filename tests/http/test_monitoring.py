"""Metrics and the server's own log, through the running server."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families
from tests.http.served import Served
from tests.http.sharing import KEY, sharing
from tests.model_server import call, say
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"
CANARY = "canary-3f9a7c2e5d1b8a64"
MODEL = "openai/scripted"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    config = f'[redact]\nliterals = ["{CANARY}"]\n[providers.openai.models.scripted]\nprice_in = 1.0\nprice_out = 2.0\n'
    script = [call("read", path="a.txt"), call("no_such_tool"), say(f"Hello, {CANARY}."), say("Again.")]
    async with sharing(tmp_path_factory.mktemp("monitoring"), script, config) as running:
        (running.sylph.workspace / "a.txt").write_text("a\n")
        session = await running.session(model=MODEL)
        await running.say(session["id"], f"hello {CANARY}")
        await running.until(session["id"])
        yield running


async def metrics(served: Served) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    answer = await served.client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def lines(served: Served) -> list[dict[str, Any]]:
    file = served.sylph.home / "sylph" / "data" / "logs" / "server.log"
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_the_log_is_counted(served: Served) -> None:
    found = await metrics(served)
    assert found["sylph_sessions"] == {(("state", "idle"),): 1}
    assert found["sylph_turns_total"] == {(("outcome", "finished"),): 1}
    answered = (("model", MODEL), ("outcome", "answered"), ("role", "main"))
    assert found["sylph_model_calls_total"][answered] == 3
    assert found["sylph_model_tokens_total"][("kind", "output"), ("model", MODEL), ("role", "main")] > 0
    assert found["sylph_model_cost_dollars_total"][("model", MODEL), ("role", "main")] > 0
    assert found["sylph_tool_calls_total"] == {
        (("outcome", "failed"), ("tool", "other")): 1,
        (("outcome", "ok"), ("tool", "read")): 1,
    }
    assert found["sylph_questions_open"] == {(): 0}
    assert found["sylph_store_bytes"][()] > 1000
    assert found["process_resident_memory_bytes"][()] > 10_000_000
    assert found["process_open_fds"][()] > 3
    (session,) = (await served.client.get(f"{API}/sessions")).json()["items"]
    await served.say(session["id"], "again")
    await served.until(session["id"], after=session["seq"])
    assert (await metrics(served))["sylph_turns_total"] == {(("outcome", "finished"),): 2}


async def test_requests_are_counted_by_their_template(served: Served) -> None:
    for id in ("one", "two"):
        await served.client.get(f"{API}/sessions/{id}")
    await served.client.get(f"/nothing/{CANARY}")
    found = await metrics(served)
    routes = {dict(labels)["route"] for labels in found["sylph_http_requests_total"]}
    assert f"{API}/sessions/{{id}}" in routes
    assert "unmatched" in routes
    missing = (("method", "GET"), ("route", f"{API}/sessions/{{id}}"), ("status", "404"))
    assert found["sylph_http_requests_total"][missing] == 2
    buckets = found["sylph_http_request_seconds_bucket"]
    count = found["sylph_http_request_seconds_count"]
    assert buckets[("le", "+Inf"), ("route", f"{API}/sessions/{{id}}")] == count[(("route", f"{API}/sessions/{{id}}"),)]
    assert CANARY not in (await served.client.get("/metrics")).text
    assert (await served.bare.get("/metrics")).status_code == 401


async def test_open_streams_are_counted(served: Served) -> None:
    (session,) = (await served.client.get(f"{API}/sessions")).json()["items"]

    async def standing(count: int) -> bool:
        return (await metrics(served))["sylph_http_streams_open"][()] == count

    # Those of the tests before may just be going.
    await eventually(lambda: standing(0), "no stream")
    async with served.client.stream("GET", f"{API}/sessions/{session['id']}/events") as answer:
        assert answer.status_code == 200
        assert await standing(1)
    await eventually(lambda: standing(0), "the stream to be counted no more")


async def test_a_request_has_a_number_that_is_found_again(served: Served) -> None:
    good = await served.client.get(f"{API}/sessions/nothing", headers={"X-Request-Id": "mine-1.a_B"})
    assert good.headers["x-request-id"] == "mine-1.a_B"
    assert good.json()["request"] == "mine-1.a_B"
    bad = await served.client.get(f"{API}/status", headers={"X-Request-Id": "a b; c"})
    assert bad.headers["x-request-id"] != "a b; c"
    denied = await served.bare.get(f"{API}/status")
    assert denied.json()["request"] == denied.headers["x-request-id"]
    found = dict[str, dict[str, Any]]()

    # It is written once the answer has gone.
    def written() -> bool:
        found.update({line.get("request", ""): line for line in lines(served)})
        return {"mine-1.a_B", denied.headers["x-request-id"]} <= set(found)

    await eventually(written, "both in the log")
    line = found["mine-1.a_B"]
    assert (line["route"], line["status"], line["who"], line["level"]) == (
        f"{API}/sessions/{{id}}",
        404,
        "tests",
        "info",
    )
    assert line["ms"] > 0
    assert found[denied.headers["x-request-id"]]["status"] == 401


async def test_no_secret_is_in_the_log(served: Served) -> None:
    (session,) = (await served.client.get(f"{API}/sessions")).json()["items"]
    await served.client.get(f"{API}/sessions/{session['id']}?{CANARY}={CANARY}", headers={"X-Other": CANARY})
    await served.client.get(f"/{CANARY}")
    await served.bare.get(f"{API}/status", headers={"Authorization": f"Bearer {CANARY}"})
    await served.client.post(f"{API}/sessions", json={"title": CANARY, "wrong": CANARY})
    await served.client.post(f"{API}/logs/client", json={"message": f"It said {CANARY} and {KEY}"})
    folder = served.sylph.home / "sylph" / "data" / "logs"
    text = "".join(file.read_text() for file in folder.iterdir())
    assert "It said" in text
    for secret in (CANARY, KEY, served.token):
        assert secret not in text
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())


async def test_the_end_of_the_log_is_told_to_who_administers(served: Served) -> None:
    told = (await served.client.get(f"{API}/logs", params={"lines": 5})).json()
    assert len(told["lines"]) == 5
    assert all({"time", "level", "event"} <= line.keys() for line in told["lines"])
    reported = await served.client.post(f"{API}/logs/client", json={"message": "It broke.", "where": "chat"})
    assert reported.status_code == 202
    errors = (await served.client.get(f"{API}/logs", params={"level": "error"})).json()["lines"]
    assert errors[-1]["event"] == "It broke."
    assert (errors[-1]["where"], errors[-1]["request"]) == ("chat", reported.json()["request"])
    made = await served.sylph.run("token", "create", "reader", "--scope", "read", "--json")
    reader = {"Authorization": f"Bearer {made.json['token']}"}
    assert (await served.bare.get(f"{API}/logs", headers=reader)).status_code == 403
    assert (await served.client.get(f"{API}/logs", params={"lines": 0})).status_code == 422


async def test_reports_of_browsers_are_bounded(served: Served) -> None:
    assert (await served.client.post(f"{API}/logs/client", json={"message": "x" * 2001})).status_code == 400
    assert (await served.client.post(f"{API}/logs/client", json={"message": "x", "level": "fatal"})).status_code == 400
    for _ in range(40):
        last = await served.client.post(f"{API}/logs/client", json={"message": "again"})
        if last.status_code == 429:
            return
    raise AssertionError("Nobody was stopped.")


async def test_levels_are_changed_while_it_runs(served: Served) -> None:
    await served.client.patch(f"{API}/config", json={"set": {"logs.level": "error"}})
    before = len(lines(served))
    await served.client.get(f"{API}/status")
    assert len(lines(served)) == before
    await served.client.patch(f"{API}/config", json={"unset": ["logs"]})
    await served.client.get(f"{API}/status")
    assert len(lines(served)) > before


async def test_a_file_that_is_full_is_followed_by_the_next(tmp_path: Any) -> None:
    config = "[logs]\nmax_mb = 0.001\nkeep = 2\n"
    async with sharing(tmp_path, [], config) as served:
        for _ in range(30):
            await served.client.get(f"{API}/health/live")
        names = sorted(file.name for file in (served.sylph.home / "sylph" / "data" / "logs").iterdir())
        assert names == ["server.log", "server.log.1", "server.log.2"]
        assert len((await served.client.get(f"{API}/logs", params={"lines": 8})).json()["lines"]) > 3
