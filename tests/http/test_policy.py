"""Tools, rules and grants through the running server."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from tests.http.served import Served
from tests.http.sharing import sharing

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with sharing(tmp_path_factory.mktemp("policy"), []) as running:
        yield running


async def explain(served: Served, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await served.client.post(f"{API}/policy/explain", json={"tool": tool, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_tools_are_told_with_the_decision_of_now(served: Served) -> None:
    tools = {one["name"]: one for one in (await served.client.get(f"{API}/tools")).json()["items"]}
    assert (tools["shell"]["decision"], tools["read"]["decision"]) == ("ask", "allow")
    assert "by arguments" in tools["shell"]["badges"]
    assert "command" in tools["shell"]["schema"]["properties"]
    one = (await served.client.get(f"{API}/tools/write", params={"mode": "plan"})).json()
    assert one["decision"] == "deny"
    assert (await served.client.get(f"{API}/tools/shel")).status_code == 404
    assert (await served.client.get(f"{API}/tools", params={"mode": "wild"})).status_code == 422


async def test_rules_are_added_ordered_and_removed(served: Served) -> None:
    first = await served.client.post(f"{API}/policy/rules", json={"decision": "deny", "command": "git push *"})
    assert first.status_code == 201, first.text
    assert (await explain(served, "shell", command="git push --force"))["decision"] == "deny"
    tag = first.headers["etag"]
    second = await served.client.post(
        f"{API}/policy/rules", json={"decision": "allow", "command": "git push *"}, headers={"If-Match": tag}
    )
    assert second.status_code == 201
    stale = await served.client.put(f"{API}/policy/order", json={"order": [2, 1]}, headers={"If-Match": tag})
    assert stale.status_code == 412
    turned = await served.client.put(f"{API}/policy/order", json={"order": [2, 1]})
    assert [one["rule"]["decision"] for one in turned.json()["rules"]] == ["allow", "deny"]
    assert (await served.client.put(f"{API}/policy/order", json={"order": [1, 1]})).status_code == 400
    assert (await served.client.delete(f"{API}/policy/rules/3")).status_code == 404
    for _ in range(2):
        assert (await served.client.delete(f"{API}/policy/rules/1")).status_code == 200
    assert (await served.client.get(f"{API}/policy")).json()["rules"] == []


@pytest.mark.parametrize(
    "rule",
    [
        {"decision": "deny"},
        {"decision": "maybe", "tool": "shell"},
        {"decision": "deny", "tool": "shell", "until": "2001-01-01"},
        {"decision": "deny", "tool": "shell", "until": "soon"},
        {"decision": "deny", "path": "[", "tool": ""},
        {"decision": "deny", "mood": "x"},
    ],
)
async def test_a_rule_that_nobody_can_mean_is_refused(served: Served, rule: dict[str, str]) -> None:
    assert (await served.client.post(f"{API}/policy/rules", json=rule)).status_code == 400


async def test_a_projects_rules_are_told(served: Served) -> None:
    folder = served.sylph.workspace / "project"
    (folder / ".sylph").mkdir(parents=True)
    (folder / ".sylph" / "rules.toml").write_text('[[rules]]\ndecision = "allow"\ntool = "write"\n')
    told = (await served.client.get(f"{API}/policy", params={"workspace": str(folder)})).json()
    assert [(one["from"], one["heeded"]) for one in told["rules"]] == [("project", False)]


async def test_the_way_to_a_decision_is_told(served: Served) -> None:
    told = await explain(served, "shell", command="rm -rf build")
    assert (told["decision"], told["effect"]) == ("ask", "write")
    assert told["path"][0]["by"] == "mode"
    wrong = await served.client.post(f"{API}/policy/explain", json={"tool": "shell", "arguments": {"comand": "x"}})
    assert (wrong.status_code, wrong.json()["kind"]) == (400, "bad_arguments")
    assert (await served.client.post(f"{API}/policy/explain", json={"tool": "shel"})).status_code == 404


async def test_a_folder_that_there_cannot_be_makes_nothing_break(served: Served) -> None:
    for path in ("/policy", "/tools", "/tools/read"):
        answer = await served.client.get(f"{API}{path}", params={"workspace": "/a\0b"})
        assert answer.status_code in (200, 400), answer.text
    for arguments in ({"path": "\0"}, {"path": "a" * 5000}, {"path": "../" * 200}):
        answer = await served.client.post(f"{API}/policy/explain", json={"tool": "read", "arguments": arguments})
        assert answer.status_code in (200, 400), answer.text
    assert (await served.client.delete(f"{API}/policy/rules/{10**30}")).status_code in (404, 422)
