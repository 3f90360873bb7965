"""Configuration, models, roles and keys through the running server."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from tests.http.served import Served
from tests.http.sharing import KEY, sharing
from tests.model_server import say

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    config = '[redact]\nliterals = ["a-literal-that-is-secret"]\n'
    async with sharing(tmp_path_factory.mktemp("settings"), [say("ok")] * 20, config) as running:
        yield running


async def config_of(served: Served) -> tuple[dict[str, Any], str]:
    answer = await served.client.get(f"{API}/config")
    assert answer.status_code == 200, answer.text
    return answer.json(), answer.headers["etag"]


async def value_of(served: Served, key: str) -> dict[str, Any]:
    view, _ = await config_of(served)
    return next(one for one in view["values"] if one["key"] == key)


async def patch(served: Served, tag: str = "", **body: Any) -> Any:
    return await served.client.patch(f"{API}/config", json=body, headers={"If-Match": tag} if tag else {})


async def test_values_are_told_with_their_origin_and_secrets_masked(served: Served) -> None:
    answer = await served.client.get(f"{API}/config")
    assert KEY not in answer.text
    assert "a-literal-that-is-secret" not in answer.text
    probe = await value_of(served, "probe")
    assert probe["value"] is False
    assert probe["from"].endswith("config.toml")
    key = await value_of(served, "providers.openai.api_key")
    assert (key["secret"], key["from"], key["value"]) == (True, "OPENAI_API_KEY", f"…{KEY[-4:]}")
    assert (await value_of(served, "limits.rounds"))["from"] == "default"
    again = await served.client.get(f"{API}/config", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


async def test_the_schema_describes_every_key(served: Served) -> None:
    schema = (await served.client.get(f"{API}/config/schema")).json()
    assert schema["$defs"]["LimitSettings"]["properties"]["rounds"]["description"] == "Model calls in one turn."


async def test_a_change_counts_at_once_and_keeps_the_comments(served: Served) -> None:
    _, tag = await config_of(served)
    done = await patch(served, tag, set={"mode": "plan", "limits.rounds": 7})
    assert done.status_code == 200, done.text
    assert set(done.json()["keys"]) == {"mode", "limits.rounds"}
    assert done.json()["restart"] is False
    assert done.headers["etag"] != tag
    session = await served.session(model="openai/scripted")
    assert session["mode"] == "plan"
    file = served.sylph.home / "sylph" / "config.toml"
    assert file.read_text().startswith("# mine\n")
    stale = await patch(served, tag, set={"mode": "trust"})
    assert (stale.status_code, stale.json()["kind"]) == (412, "changed")
    assert (await patch(served, unset=["mode"], set={"limits.rounds": 250})).status_code == 200
    assert (await value_of(served, "mode"))["value"] == "ask"


async def test_a_limit_that_is_set_live_ends_the_next_turn(served: Served) -> None:
    session = await served.session(model="openai/scripted")
    assert (await patch(served, set={"budget.session.rounds": 1})).status_code == 200
    await served.say(session["id"], "one")
    first = await served.until(session["id"])
    assert first[-1].data["data"]["outcome"] == "finished"
    await served.say(session["id"], "two")
    second = await served.until(session["id"], after=int(first[-1].id))
    assert second[-1].data["data"]["outcome"] == "budget"
    assert (await patch(served, unset=["budget"])).status_code == 200


async def test_what_waits_for_a_restart_is_told(served: Served) -> None:
    done = (await patch(served, set={"undo.keep_days": 9})).json()
    assert (done["restart"], done["pending"]) == (True, ["undo.keep_days"])
    status = (await served.client.get(f"{API}/status")).json()
    assert (status["restart"], status["pending"]) == (True, ["undo.keep_days"])
    assert (await patch(served, unset=["undo"])).json()["restart"] is False


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"set": {"no.such": 1}},
        {"set": {"limits.rounds": 0}},
        {"set": {"limits.rounds": "many"}},
        {"set": {"limits.rounds": None}},
        {"set": {"": 1}},
        {"set": {"model = 1 #": 1}},
        {"set": {"mode = 1\nmodel": "x"}},
        {"unset": ["mode = 1 #"]},
        {"set": {"mode": "wild"}},
        {"set": {"providers.new.dialect": "chat"}},
        {"set": {"rules": [{"decision": "deny", "until": "never"}]}},
        {"set": {"sandbox.hosts": ["http://not a host"]}},
        {"unset": ["limits.retries"]},
        {"other": 1},
        [],
    ],
)
async def test_what_is_wrong_is_refused_and_changes_nothing(served: Served, body: Any) -> None:
    file = served.sylph.home / "sylph" / "config.toml"
    before = file.read_text()
    refused = await served.client.patch(f"{API}/config", json=body)
    assert refused.status_code == 400, refused.text
    assert refused.json()["next"]
    assert file.read_text() == before


async def test_of_many_changes_at_once_none_is_lost(served: Served) -> None:
    _, tag = await config_of(served)
    ways = [patch(served, tag, set={"notify.on": ["asked"]}), patch(served, tag, set={"notify.on": ["ended"]})]
    assert sorted(answer.status_code for answer in await asyncio.gather(*ways)) == [200, 412]
    many = [patch(served, set={f"providers.openai.models.m{n}.window": 1000 + n}) for n in range(8)]
    assert {answer.status_code for answer in await asyncio.gather(*many)} == {200}
    view, _ = await config_of(served)
    known = {one["key"]: one["value"] for one in view["values"]}
    assert [known[f"providers.openai.models.m{n}.window"] for n in range(8)] == [1000 + n for n in range(8)]
    assert (await patch(served, unset=["notify", "providers.openai.models"])).status_code == 200


async def test_the_text_is_edited_without_its_secrets(served: Served) -> None:
    assert (await patch(served, set={"providers.other": {"base_url": "http://127.0.0.1:9", "api_key": KEY}})).is_success
    raw = await served.client.get(f"{API}/config/raw")
    text, tag = raw.json()["text"], raw.headers["etag"]
    assert KEY not in text
    assert "a-literal-that-is-secret" not in text
    put = await served.client.put(
        f"{API}/config/raw", json={"text": f"{text}\n# and mine\n"}, headers={"If-Match": tag}
    )
    assert put.status_code == 200, put.text
    kept = (served.sylph.home / "sylph" / "config.toml").read_text()
    assert f'api_key = "{KEY}"' in kept
    assert '"a-literal-that-is-secret"' in kept
    assert "# and mine" in kept
    again = await served.client.put(f"{API}/config/raw", json={"text": text}, headers={"If-Match": tag})
    assert again.status_code == 412


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb = = 2\n", "2"), ("# x\n[limits]\nrounds = 0\n", "3"), ("\n\nmood = 1\n", "3")]
)
async def test_a_wrong_text_is_refused_with_its_line(served: Served, text: str, line: str) -> None:
    refused = await served.client.put(f"{API}/config/raw", json={"text": text})
    assert refused.status_code == 400
    assert refused.json()["details"]["line"] == line


async def test_an_earlier_text_comes_back(served: Served) -> None:
    before = (served.sylph.home / "sylph" / "config.toml").read_text()
    assert (await served.client.put(f"{API}/config/raw", json={"text": "probe = false\n"})).status_code == 200
    versions = (await served.client.get(f"{API}/config/versions")).json()["items"]
    done = await served.client.post(f"{API}/config/versions/{versions[0]['id']}/restore")
    assert done.status_code == 200, done.text
    assert (served.sylph.home / "sylph" / "config.toml").read_text() == before
    assert (await served.client.post(f"{API}/config/versions/nothing/restore")).status_code == 404


async def test_what_was_configured_a_moment_ago_counts_for_the_next_session(served: Served) -> None:
    for mode in ("plan", "ask"):
        assert (await served.sylph.run("config", "set", "mode", mode)).code == 0
        assert (await served.session())["mode"] == mode


async def test_a_file_that_was_changed_elsewhere_is_taken_up(served: Served) -> None:
    assert (await served.sylph.run("config", "set", "mode", "auto_noselfmod")).code == 0
    assert (await value_of(served, "mode"))["value"] == "auto_noselfmod"
    file = served.sylph.home / "sylph" / "config.toml"
    good = file.read_text()
    file.write_text("mode = \n")
    view, _ = await config_of(served)
    assert "not valid TOML" in view["trouble"]
    assert (await value_of(served, "mode"))["value"] == "auto_noselfmod"
    assert (await served.client.post(f"{API}/config/reload")).status_code == 400
    file.write_text(good)
    assert (await served.client.post(f"{API}/config/reload")).json()["trouble"] == ""
    assert (await served.sylph.run("config", "unset", "mode")).code == 0


async def test_models_are_listed_told_and_tested(served: Served) -> None:
    page = (await served.client.get(f"{API}/models", params={"provider": "openai", "limit": 1})).json()
    first = page["items"][0]
    assert first["provider"] == "openai"
    assert KEY not in str(page)
    one = await served.client.get(f"{API}/models/{first['id']}")
    assert one.json()["id"] == first["id"]
    assert (await served.client.get(f"{API}/models/openai/nothing-like-it")).status_code == 404
    assert any(
        each["name"] == "openai" and each["reachable"]
        for each in (await served.client.get(f"{API}/providers")).json()["items"]
    )
    tested = (await served.client.post(f"{API}/models/test", json={"model": "openai/scripted"})).json()
    assert (tested["ok"], tested["text"]) == (True, "ok")
    failed = (await served.client.post(f"{API}/models/test", json={"model": "other/x"})).json()
    assert failed["ok"] is False
    assert failed["trouble"]["message"]
    assert (await served.client.post(f"{API}/models/test", json={"model": "nobody"})).status_code == 409
    assert (await served.client.post(f"{API}/models/refresh")).status_code == 200


async def test_a_role_is_given_and_taken_back(served: Served) -> None:
    given = await served.client.put(f"{API}/roles/judge", json={"models": ["openai/wise"]})
    assert given.status_code == 200, given.text
    assert given.json()["model"] == "openai/wise"
    roles = {one["role"]: one for one in (await served.client.get(f"{API}/roles")).json()["items"]}
    assert (roles["judge"]["model"], roles["judge"]["from"]) == ("openai/wise", "config")
    assert (await served.client.put(f"{API}/roles/main", json={"models": ["openai/scripted"]})).status_code == 200
    assert (await served.session())["model"] == "openai/scripted"
    assert (await served.client.put(f"{API}/roles/fallback", json={"models": ["openai/a", "openai/b"]})).is_success
    assert (await served.client.put(f"{API}/roles/judge", json={"models": ["openai/a", "openai/b"]})).status_code == 400
    assert (await served.client.put(f"{API}/roles/king", json={"models": []})).status_code == 404
    assert (await served.client.put(f"{API}/roles/judge", json={"models": ["nowhere/x"]})).status_code == 409
    assert (await served.client.put(f"{API}/roles/judge", json={"models": []})).json()["from"] == "main"
    assert (await patch(served, unset=["roles", "model"])).status_code == 200


async def test_a_key_is_written_used_and_forgotten(served: Served) -> None:
    secret = "gsk-written-once-0123456789abcdef"
    url = served.sylph.environ["OPENAI_BASE_URL"]
    assert (await patch(served, set={"providers.mine": {"base_url": url}})).status_code == 200
    saved = await served.client.put(f"{API}/credentials/mine", json={"key": secret})
    assert saved.status_code == 200, saved.text
    assert saved.json()["tail"].endswith("cdef")
    listed = await served.client.get(f"{API}/credentials")
    offered = {each["name"]: each for each in listed.json()["offered"]}
    assert len(offered) > 20
    assert offered["anthropic"]["url"] == "https://api.anthropic.com"
    assert offered["mine"]["entry"] == "key"
    assert not offered["azure"]["url"]
    assert secret not in listed.text
    assert any(one["provider"] == "mine" and one["used"] for one in listed.json()["connected"])
    assert (await served.client.post(f"{API}/credentials/mine/test")).json()["reachable"] is True
    assert (await served.client.post(f"{API}/models/test", json={"model": "mine/scripted"})).json()["ok"] is True
    assert (await served.client.delete(f"{API}/credentials/mine")).json()["forgotten"] == ["key"]
    assert (await served.client.delete(f"{API}/credentials/mine")).status_code == 404
    assert (await served.client.put(f"{API}/credentials/nobody", json={"key": secret})).status_code == 404
    assert (await served.client.put(f"{API}/credentials/mine", json={"key": "with blanks\n"})).status_code == 400
    assert (await patch(served, unset=["providers.mine"])).status_code == 200
