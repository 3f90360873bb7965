"""Sylph with models that do not speak OpenAI's dialects, and with several in one session."""

import base64
import json
from pathlib import Path

import pytest
from tests.flows.program import Sylph
from tests.model_server import Asked, ModelServer, assert_extends, calls, fail, say
from tests.tools.pictures import png

PROFILE = "[work]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = a-secret-for-tests\n"
MODELS = {
    "anthropic": "anthropic/claude-sonnet-5",
    "mine": "mine/kimi-k2",
    "gemini": "google/gemini-3-pro",
    "vertex": "vertex/gemini-3-pro",
    "bedrock": "bedrock/us.anthropic.claude-sonnet-4-6-v1:0",
}
LOGINS = {
    "anthropic": ("x-api-key", "a-key-for-tests"),
    "mine": ("authorization", "Bearer a-key-for-tests"),
    "gemini": ("x-goog-api-key", "a-key-for-tests"),
    "vertex": ("authorization", "Bearer ya29.token"),
    "bedrock": ("authorization", "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/"),
}
SPEAKS = {"mine": "anthropic", "vertex": "gemini"}


async def set_up(sylph: Sylph, server: ModelServer, provider: str) -> None:
    """As people set each of them up."""
    (sylph.home / "aws").write_text(PROFILE)
    sylph.environ |= {
        "anthropic": {"ANTHROPIC_BASE_URL": server.root, "ANTHROPIC_API_KEY": "a-key-for-tests"},
        "mine": {"MY_KEY": "a-key-for-tests"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": server.root, "GEMINI_API_KEY": "a-key-for-tests"},
        "vertex": {"GOOGLE_VERTEX_BASE_URL": server.root, "GOOGLE_CLOUD_PROJECT": "my-project"},
        "bedrock": {
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.root,
            "AWS_PROFILE": "work",
            "AWS_SHARED_CREDENTIALS_FILE": str(sylph.home / "aws"),
        },
    }[provider]
    settings = {
        "mine": {"base_url": server.root, "dialect": "anthropic", "api_key_env": "MY_KEY"},
        "vertex": {"key_command": "echo ya29.token"},
    }
    for name, value in settings.get(provider, {}).items():
        assert (await sylph.run("config", "set", f"providers.{provider}.{name}", value)).code == 0


@pytest.mark.parametrize("provider", MODELS)
async def test_a_task_with_tools_is_done_and_replayed_in_every_dialect(sylph: Sylph, provider: str) -> None:
    (sylph.workspace / "a.txt").write_text("one\n")
    (sylph.workspace / "b.txt").write_text("two\n")
    two = (("read", {"path": "a.txt"}), ("read", {"path": "b.txt"}))
    steps = [
        fail(429, "busy", headers={"retry-after": "0"}),
        calls(*two, text="Let me look.", reasoning="Two files.", encrypted="c2lnbmVk"),
        say("Grüße: one and two."),
    ]
    speaks = SPEAKS.get(provider, provider)
    bare = MODELS[provider].partition("/")[2]
    async with ModelServer(steps, dialects=[speaks], models=[bare]) as server:
        await set_up(sylph, server, provider)
        done = await sylph.run("-m", MODELS[provider], "what do they say?")
        listed = (await sylph.run("models")).out
        asked = server.requests
    assert (done.code, done.out) == (0, "Grüße: one and two.\n"), done.err
    assert "▸ read  a.txt  ✓" in done.err
    assert MODELS[provider] in listed
    header, value = LOGINS[provider]
    assert all(each.headers[header].startswith(value) for each in asked)
    assert_extends(asked)
    # What the service said of its thinking went back to it, and the results with it.
    assert b"c2lnbmVk" in asked[2].body
    assert b"one" in asked[2].body
    (sylph.workspace / "a.txt").unlink()
    sylph.environ.clear()
    again = await sylph.run("replay", "last")
    assert again.code == 0, again.out + again.err
    assert "and 2 prompts came out as they were, byte for byte" in again.out


def shown(asked: Asked, picture: bytes) -> bool:
    return base64.b64encode(picture) in asked.body


async def test_a_session_goes_from_model_to_model_and_back(sylph: Sylph) -> None:
    (sylph.workspace / "a.png").write_bytes(png())
    look = ("read", {"path": "a.png"})
    steps = [
        *(calls(look, reasoning="A picture.", encrypted="YW50aHJvcGlj"), say("Red.", encrypted="YW50aHJvcGlj")),
        *(calls(("list", {"path": "."})), say("Still red.")),
        *(calls(look, encrypted="Z2VtaW5p"), say("Red again.", encrypted="Z2VtaW5p")),
        say("As I said."),
    ]
    order = ["anthropic/claude-sonnet-5", "openai-chat/scripted", "google/gemini-3-pro", "anthropic/claude-sonnet-5"]
    async with ModelServer(steps, dialects=["chat", "anthropic", "gemini"]) as server:
        await set_up(sylph, server, "anthropic")
        await set_up(sylph, server, "gemini")
        sylph.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "a-key-for-tests"}
        for at, model in enumerate(order):
            session = ("-s", "last") if at else ()
            done = await sylph.run(*session, "-m", model, f"question {at}")
            assert done.code == 0, done.err
        asked = server.requests
    first, chat, gemini, last = asked[1], asked[3], asked[5], asked[6]
    assert all(shown(each, png()) for each in (first, chat, gemini, last))
    # Each model gets its own words back, and nobody else's.
    assert [(b"YW50aHJvcGlj" in each.body, b"Z2VtaW5p" in each.body) for each in (first, chat, gemini, last)] == [
        (True, False),
        (False, False),
        (False, True),
        (True, False),
    ]
    words = json.dumps(last.json["messages"])
    assert [text in words for text in ("Red.", "Still red.", "Red again.")] == [True] * 3
    calls_made = [part for said in last.json["messages"] for part in said["content"] if part["type"] == "tool_use"]
    assert [call["name"] for call in calls_made] == ["read", "list", "read"]
    answered = [part for said in last.json["messages"] for part in said["content"] if part["type"] == "tool_result"]
    assert [part["tool_use_id"] for part in answered] == [call["id"] for call in calls_made]
    (sylph.workspace / "a.png").unlink()
    sylph.environ.clear()
    again = await sylph.run("replay", "last")
    assert again.code == 0, again.out + again.err


async def test_a_key_that_cannot_be_had_is_told_with_what_to_do(sylph: Sylph, tmp_path: Path) -> None:
    done = await sylph.run("-m", "bedrock/x", "hello", AWS_PROFILE="nobody")
    assert done.code == 4
    assert "there is no profile 'nobody'" in done.err
    await sylph.run("config", "set", "providers.vertex.key_command", "sh -c 'echo please log in >&2; exit 1'")
    done = await sylph.run("-m", "vertex/gemini-3-pro", "hello", GOOGLE_CLOUD_PROJECT="p")
    assert (done.code, "please log in" in done.err) == (4, True)
    done = await sylph.run("-m", "bedrock/x", "hello")
    assert "AWS_ACCESS_KEY_ID" in done.err


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "bedrock"])
async def test_a_prompt_only_grows_over_modes_processes_and_forks(sylph: Sylph, provider: str) -> None:
    steps = [
        *(calls(("list", {"path": "."}), reasoning="Hm.", encrypted="c2ln"), say("Nothing.", encrypted="c2ln")),
        *(say(f"Answer {number}.", reasoning="So.", encrypted="c2ln") for number in range(3)),
    ]
    async with ModelServer(steps, dialects=[provider]) as server:
        await set_up(sylph, server, provider)
        first = await sylph.run("-m", MODELS[provider], "--json", "begin")
        session = first.events[0]["session"]
        await sylph.run("-s", session, "--mode", "plan", "another mode, another process")
        await sylph.run("-s", session, "once more")
        forked = (await sylph.run("session", "fork", session)).out.strip()
        branch = await sylph.run("-s", forked, "--json", "on the branch")
        assert_extends(server.requests)
    requested = [each["data"] for each in branch.events if each["type"] == "model.requested"]
    assert [each.get("missed", "") for each in requested] == [""]
