"""Which way into a provider is taken, and what other tools' files give."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.model_server import ModelServer, fail
from tests.oauth_server import OAuthServer

from sylph.compose.credentials import build_credential_sources
from sylph.compose.models import build_model_sources
from sylph.config import load_config
from sylph.core.errors import ProviderError
from sylph.core.messages import Message
from sylph.core.provider import ModelRequest
from sylph.net.http_client import HttpClient
from sylph.providers import discover
from sylph.providers.credentials.entry import CredentialEntry
from sylph.providers.credentials.other_tools import TOOL_CREDENTIALS, ToolCredential, borrow_token, find_tool_file
from sylph.providers.credentials.store import CredentialStore
from sylph.providers.endpoint import Endpoint
from sylph.providers.logins import chatgpt, copilot
from sylph.providers.logins.borrowed_login import BorrowedTokenSource
from sylph.providers.logins.credential_sources import CredentialSources, ignore_secret
from sylph.providers.logins.saved_key import SavedKeySecret, SavedKeySource
from sylph.providers.logins.tokens import LoginTokens
from sylph.providers.registry import create_provider

TOKEN = "token-0123456789"
LATER = (time.time() + 3600) * 1000
# How each tool writes its login down, as of 2026.
FILES: dict[str, Any] = {
    "claude-code": {"claudeAiOauth": {"accessToken": TOKEN, "refreshToken": "r", "expiresAt": LATER, "scopes": []}},
    "codex": {"OPENAI_API_KEY": None, "tokens": {"access_token": TOKEN, "account_id": "acct", "id_token": "i"}},
    "codex-key": {"OPENAI_API_KEY": TOKEN, "tokens": None, "last_refresh": None},
    "gemini-cli": f'# mine\nexport GEMINI_API_KEY="{TOKEN}"\nOTHER=1\n',
    "qwen-code": {"access_token": TOKEN, "resource_url": "portal.example", "expiry_date": LATER},
    "copilot-editor": {"github.com:Iv1.x": {"user": "u", "oauth_token": TOKEN, "githubAppId": "Iv1.x"}},
    "copilot-vim": {"github.com": {"user": "u", "oauth_token": TOKEN}},
    "gh": f"github.com:\n    user: u\n    oauth_token: {TOKEN}\n    git_protocol: https\n",
}


def written(tool: ToolCredential, home: Path, content: object) -> Path:
    _, folder, name = tool.path
    root = home / ".config" / folder if tool.path[0] == "XDG_CONFIG_HOME" else home / folder
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return root / name


@pytest.mark.parametrize("tool", TOOL_CREDENTIALS, ids=[tool.name for tool in TOOL_CREDENTIALS])
def test_each_tool_s_file_is_understood(tmp_path: Path, tool: ToolCredential) -> None:
    environ = {"HOME": str(tmp_path)}
    assert find_tool_file(tool, environ) is None
    path = written(tool, tmp_path, FILES[tool.name])
    assert find_tool_file(tool, environ) == path
    lent = borrow_token(tool, environ)
    assert lent.token == TOKEN
    assert TOKEN not in repr(lent)
    if tool.name == "codex":
        assert lent.headers == {"chatgpt-account-id": "acct"}
    if tool.name == "qwen-code":
        assert lent.base_url == "https://portal.example/v1"


@pytest.mark.parametrize("tool", TOOL_CREDENTIALS, ids=[tool.name for tool in TOOL_CREDENTIALS])
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '"x"', "\x00\xff", "a: [", '{"tokens": 3}', "x" * 2_000_000])
def test_whatever_a_file_holds_it_is_told(tmp_path: Path, tool: ToolCredential, content: str) -> None:
    written(tool, tmp_path, content)
    with pytest.raises(ProviderError) as caught:
        borrow_token(tool, {"HOME": str(tmp_path)})
    assert tool.renewal_hint in caught.value.trouble.next


def test_a_folder_that_a_variable_names(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "auth.json").write_text(json.dumps(FILES["codex"]))
    codex = next(tool for tool in TOOL_CREDENTIALS if tool.name == "codex")
    assert borrow_token(codex, {"HOME": "/nowhere", "CODEX_HOME": str(tmp_path / "elsewhere")}).token == TOKEN


async def test_a_borrowed_login_is_read_again_when_its_tool_renews_it(tmp_path: Path) -> None:
    tool = TOOL_CREDENTIALS[0]
    old = {"claudeAiOauth": {"accessToken": "old-token", "expiresAt": 1}}
    path = written(tool, tmp_path, old)
    login = BorrowedTokenSource(tool, {"HOME": str(tmp_path)})
    with pytest.raises(ProviderError, match="has ended"):
        await login.get_token()
    path.write_text(json.dumps(FILES["claude-code"]))
    assert await login.get_token() == TOKEN == login.last_token
    with pytest.raises(ProviderError, match="is not accepted"):
        await login.renew_token(TOKEN)


async def test_a_saved_key_is_read_when_it_is_needed_and_again_when_it_is_refused(tmp_path: Path) -> None:
    store = CredentialStore(tmp_path / "credentials", keep="file")
    login = SavedKeySource(store, "groq")
    with pytest.raises(ProviderError, match="not saved any more"):
        await login.get_token()
    store.save_entry(CredentialEntry(provider="groq", kind="key"), msgspec.json.encode(SavedKeySecret("one")))
    assert await login.get_token() == "one"
    with pytest.raises(ProviderError, match="does not accept the saved key"):
        await login.renew_token("one")
    store.save_entry(CredentialEntry(provider="groq", kind="key"), msgspec.json.encode(SavedKeySecret("two")))
    assert await login.get_token() == "one"
    assert await login.renew_token("one") == "two" == login.last_token


@pytest.fixture
async def ways(tmp_path: Path, client: HttpClient) -> AsyncIterator[CredentialSources]:
    store = CredentialStore(tmp_path / "home" / "credentials", keep="file")
    services = {"chatgpt": chatgpt.SERVICE, "copilot": copilot.SERVICE}
    store.save_entry(
        CredentialEntry(provider="groq", kind="key", tail="…6789"), msgspec.json.encode(SavedKeySecret("k"))
    )
    store.save_entry(CredentialEntry(provider="anthropic", kind="borrowed", account="claude-code"), b"")
    login = CredentialEntry(provider="chatgpt", kind="login", headers={"chatgpt-account-id": "a"})
    store.save_entry(login, msgspec.json.encode(LoginTokens(access="t", refresh="r")))
    store.save_entry(CredentialEntry(provider="copilot", kind="login", base_url="https://api.other.example"), b"{}")
    yield CredentialSources(store, client, services=lambda: services, environ={"HOME": str(tmp_path)})


def endpoints(home: Path, ways: CredentialSources | None, text: str = "", **environ: str) -> dict[str, Endpoint]:
    (home / "config.toml").write_text(text)
    config = load_config({"SYLPH_HOME": str(home), **environ})
    return {each.name: each for each in discover.all_endpoints(build_model_sources(config, ways=ways))}


async def test_what_is_stored_becomes_a_service(tmp_path: Path, ways: CredentialSources) -> None:
    found = endpoints(tmp_path, ways, "probe = false\n")
    assert set(found) == {"groq", "anthropic", "chatgpt", "copilot"}
    assert await found["groq"].auth_headers() == {"Authorization": "Bearer k"}
    assert found["groq"].key_from == "a saved key (…6789) in Sylph's credentials"
    assert found["chatgpt"].headers["chatgpt-account-id"] == "a"
    assert found["copilot"].base_url == "https://api.other.example"
    assert found["copilot"].headers["Editor-Version"].startswith("Sylph/")
    assert (found["anthropic"].key_header, found["anthropic"].headers["anthropic-beta"]) == ("", "oauth-2025-04-20")


async def test_a_saved_key_goes_where_the_dialect_wants_it(tmp_path: Path, client: HttpClient) -> None:
    store = CredentialStore(tmp_path / "credentials", keep="file")
    store.save_entry(
        CredentialEntry(provider="anthropic", kind="key"), msgspec.json.encode(SavedKeySecret("saved-key"))
    )
    store.save_entry(CredentialEntry(provider="google", kind="key"), msgspec.json.encode(SavedKeySecret("saved-key")))
    ways = CredentialSources(store, client, services=dict, environ={})
    for name, dialect, header in (("anthropic", "anthropic", "x-api-key"), ("google", "gemini", "x-goog-api-key")):
        async with ModelServer([fail(401, "no: saved-key")], dialects=[dialect]) as server:
            found = endpoints(tmp_path, ways, f'[providers.{name}]\nbase_url = "{server.root}"\n')[name]
            provider = create_provider(found, client)
            request = ModelRequest(model="scripted", system="s", messages=(Message("user", "hi"),))
            with pytest.raises(ProviderError, match="does not accept the saved key") as caught:
                async for _ in provider.stream(request, provider.body(request)):
                    pass
            assert server.requests[0].headers[header] == "saved-key"
            assert "authorization" not in server.requests[0].headers
            assert "saved-key" not in str(caught.value)


async def test_what_is_opened_is_told_to_who_keeps_it_secret(tmp_path: Path, client: HttpClient) -> None:
    store = CredentialStore(tmp_path / "credentials", keep="file")
    store.save_entry(CredentialEntry(provider="groq", kind="key"), msgspec.json.encode(SavedKeySecret("saved-key")))
    heard: list[tuple[str, str]] = []

    def opened(secret: str, name: str) -> None:
        heard.append((secret, name))

    way = CredentialSources(store, client, services=dict, environ={}, opened=opened).find_source("groq")
    assert way and way.login and not heard
    await way.login.get_token()
    assert heard == [("saved-key", "groq-key")]


async def test_the_environment_and_the_config_file_come_first(tmp_path: Path, ways: CredentialSources) -> None:
    found = endpoints(tmp_path, ways, GROQ_API_KEY="e", ANTHROPIC_API_KEY="f")
    assert await found["groq"].auth_headers() == {"Authorization": "Bearer e"}
    assert (found["anthropic"].login, found["anthropic"].key_header) == (None, "x-api-key")


async def test_a_key_belongs_to_an_address(tmp_path: Path, client: HttpClient) -> None:
    store = CredentialStore(tmp_path / "credentials", keep="file")
    entry = CredentialEntry(provider="groq", kind="key", base_url="https://api.groq.com/openai/v1")
    store.save_entry(entry, msgspec.json.encode(SavedKeySecret("k")))
    ways = CredentialSources(store, client, services=dict, environ={})
    assert endpoints(tmp_path, ways)["groq"].login
    for url in ("https://api.groq.com.evil", "http://api.groq.com", "https://api.groq.com:8443"):
        other = endpoints(tmp_path, ways, GROQ_BASE_URL=url)["groq"]
        assert other.login is None
        assert "is for https://api.groq.com" in other.elsewhere


def test_where_nothing_is_stored_nothing_is_looked_for(tmp_path: Path, client: HttpClient) -> None:
    assert build_credential_sources(load_config({"SYLPH_HOME": str(tmp_path)}), client, str, ignore_secret) is None


async def test_a_borrowed_github_login_is_exchanged(tmp_path: Path, client: HttpClient) -> None:
    async with OAuthServer() as server:
        github = json.loads(server.grant().body)["access_token"]
        tool = next(tool for tool in TOOL_CREDENTIALS if tool.name == "gh")
        written(tool, tmp_path, f"github.com:\n    oauth_token: {github}\n")
        store = CredentialStore(tmp_path / "credentials", keep="file")
        store.save_entry(CredentialEntry(provider="copilot", kind="borrowed", account="gh"), b"")
        services = {"copilot": replace(copilot.SERVICE, **server.endpoints())}
        way = CredentialSources(store, client, services=lambda: services, environ={"HOME": str(tmp_path)}).find_source(
            "copilot"
        )
        assert way and way.login
        token = await way.login.get_token()
        assert token.startswith("copilot-") and token == way.login.last_token
        assert await way.login.renew_token(token) != token
        assert await way.login.renew_token(token) == way.login.last_token, "it was renewed already"
        assert server.exchanges == 2


def test_the_passphrase_is_given_to_nobody(tmp_path: Path) -> None:
    config = load_config({"SYLPH_HOME": str(tmp_path), "SYLPH_PASSPHRASE": "canary"})
    assert config.passphrase == "canary"
    assert "canary" not in str(config.environ)
