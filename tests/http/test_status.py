"""Status, cost and health through the running server."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from tests.http.served import Served
from tests.http.sharing import sharing
from tests.model_server import say

from sylph import __version__

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    config = "[providers.openai.models.scripted]\nprice_in = 1.0\nprice_out = 2.0\n[budget.day]\nmoney = 5.0\n"
    async with sharing(tmp_path_factory.mktemp("status"), [say("Hello.")] * 4, config) as running:
        session = await running.session(model="openai/scripted")
        await running.say(session["id"], "hello")
        await running.until(session["id"])
        yield running


async def test_the_status_tells_what_there_is(served: Served) -> None:
    told = (await served.client.get(f"{API}/status")).json()
    assert (told["version"], told["mode"], told["sessions"], told["turns"]) == (__version__, "ask", 1, 1)
    assert told["providers"][0]["reachable"] is True
    assert told["usage"]["output"] > 0
    assert told["cost"] > 0
    assert told["budgets"][0]["cap"] == 5_000_000
    assert told["restart"] is False


@pytest.mark.parametrize("by", ["day", "session", "model", "role", "label", "faculty", "tool"])
async def test_the_cost_is_told_from_every_side(served: Served, by: str) -> None:
    told = (await served.client.get(f"{API}/cost", params={"by": by, "since": "all"})).json()
    assert sum(row["cost"] for row in told["rows"]) == told["total"]["cost"] > 0
    mine = await served.sylph.run("cost", "--by", by, "--since", "all", "--json")
    assert mine.json["rows"] == told["rows"]


async def test_the_cost_of_each_day_is_told_by_model(served: Served) -> None:
    told = (await served.client.get(f"{API}/cost/daily", params={"since": "all"})).json()
    days = (await served.client.get(f"{API}/cost", params={"by": "day", "since": "all"})).json()
    assert {row["day"] for row in told} == {row["key"] for row in days["rows"]}
    assert sum(row["cost"] for row in told) == days["total"]["cost"] > 0
    assert {row["model"] for row in told} == {"openai/scripted"}
    assert (await served.client.get(f"{API}/cost/daily", params={"since": "never"})).status_code == 400


async def test_what_was_spent_stays_spent_when_its_session_goes_into_the_trash(served: Served) -> None:
    before = (await served.client.get(f"{API}/status")).json()
    (session,) = (await served.client.get(f"{API}/sessions")).json()["items"]
    await served.client.delete(f"{API}/sessions/{session['id']}")
    after = (await served.client.get(f"{API}/status")).json()
    assert (after["sessions"], after["cost"], after["usage"]) == (0, before["cost"], before["usage"])
    await served.client.post(f"{API}/sessions/{session['id']}/restore")


async def test_a_wrong_time_is_refused(served: Served) -> None:
    assert (await served.client.get(f"{API}/cost", params={"since": "yesterday-ish"})).status_code == 400
    assert (await served.client.get(f"{API}/cost", params={"by": "mood"})).status_code == 422


async def test_health_is_told_at_three_depths(served: Served) -> None:
    assert (await served.bare.get(f"{API}/health/live")).json()["status"] == "ok"
    assert (await served.bare.get(f"{API}/health/ready")).json()["status"] == "ok"
    assert (await served.bare.get(f"{API}/health")).status_code == 401
    told = (await served.client.get(f"{API}/health")).json()
    assert (told["status"], told["store"]["ok"], told["open_turns"]) == ("ok", True, 0)
    assert told["process"]["memory"] > 10_000_000
    assert told["process"]["files"] > 3
    assert told["disk_free"] > 0


async def test_the_doctor_comes_to_the_server(served: Served) -> None:
    told = (await served.client.get(f"{API}/doctor")).json()
    assert {"store", "sandbox", "disk", "models"} <= {one["what"] for one in told["findings"]}
    assert told["ok"] is True, told


async def test_a_store_that_is_gone_is_not_ready(served: Served) -> None:
    store = served.sylph.home / "sylph" / "data" / "events.db"
    away = store.with_suffix(".away")
    store.rename(away)
    try:
        answer = await served.bare.get(f"{API}/health/ready")
        assert (answer.status_code, answer.json()["kind"]) == (503, "store_failed")
        assert (await served.client.get(f"{API}/health")).json()["status"] == "failing"
    finally:
        away.rename(store)
    assert (await served.bare.get(f"{API}/health/ready")).status_code == 200
