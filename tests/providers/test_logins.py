"""Logins that are kept fresh, against a server that rotates its tokens and makes every trouble."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.oauth_server import Answer, OAuthServer, dropped, error, garbage, html, too_late
from tests.patience import eventually

from sylph.core.errors import ProviderError, StoreError
from sylph.net.http_client import HttpClient
from sylph.providers.credentials.entry import CredentialEntry
from sylph.providers.credentials.private_folder import CredentialFolder
from sylph.providers.credentials.store import CredentialStore
from sylph.providers.logins import chatgpt, copilot
from sylph.providers.logins.oauth import OAuthService
from sylph.providers.logins.token_refresh import RefreshingTokenSource
from sylph.providers.logins.tokens import (
    LoginTokens,
    OAuthTokenResponse,
    jwt_claims,
    jwt_lifetime,
    tokens_from_response,
)
from sylph.testing import FakeClock

NOW = 1_700_000_000.0


@pytest.fixture
async def server() -> AsyncIterator[OAuthServer]:
    async with OAuthServer() as server:
        yield server


def service(server: OAuthServer, base: OAuthService = chatgpt.SERVICE) -> OAuthService:
    return replace(base, client_id="tests", **server.endpoints())


def logged_in(
    home: Path, server: OAuthServer, *, left: float = -1.0, clock: FakeClock | None = None
) -> CredentialStore:
    """A store with a login that ends `left` seconds from now."""
    granted = json.loads(server.grant().body)
    tokens = LoginTokens(access=granted["access_token"], refresh=granted["refresh_token"], expires=NOW + left)
    store = CredentialStore(home / "credentials", keep="file", clock=clock)
    store.save_entry(CredentialEntry(provider="chatgpt", kind="login"), msgspec.json.encode(tokens))
    return store


def login(
    store: CredentialStore, server: OAuthServer, client: HttpClient, clock: FakeClock | None = None
) -> RefreshingTokenSource:
    clock = clock or FakeClock(round(NOW * 1000))
    renew = partial(chatgpt.renew, service(server), client, clock=clock)
    return RefreshingTokenSource(store, "chatgpt", renew, clock=clock)


def stored(store: CredentialStore) -> LoginTokens:
    entry = store.read_entry("chatgpt", "login")
    assert entry
    return msgspec.json.decode(store.read_secret(entry), type=LoginTokens)


def entry_of(store: CredentialStore) -> CredentialEntry:
    entry = store.read_entry("chatgpt", "login")
    assert entry
    return entry


async def test_a_token_that_is_good_is_not_renewed(tmp_path: Path, server: OAuthServer, client: HttpClient) -> None:
    store = logged_in(tmp_path, server, left=3600)
    assert await login(store, server, client).get_token() == stored(store).access
    assert server.asked == []


async def test_an_old_one_is_renewed_once_for_all_that_ask(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server)
    fresh = login(store, server, client)
    found = await asyncio.gather(*(fresh.get_token() for _ in range(20)))
    assert set(found) == {stored(store).access}
    assert server.refreshes == 1
    assert stored(store).refresh in server.good
    assert stored(store).expires == NOW + 3600


async def test_also_for_those_who_hold_the_same_stale_one(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server, left=3600)
    fresh = login(store, server, client)
    stale = await fresh.get_token()
    found = await asyncio.gather(*(fresh.renew_token(stale) for _ in range(20)))
    assert set(found) == {stored(store).access} != {stale}
    assert server.refreshes == 1


async def test_two_processes_get_one_refresh(tmp_path: Path, server: OAuthServer) -> None:
    logged_in(tmp_path, server, left=-1e9)
    both = [await child(tmp_path, server) for _ in range(4)]
    told = await asyncio.gather(*(each.communicate() for each in both))
    assert len({out for out, _ in told}) == 1, told
    assert server.refreshes == 1
    assert not server.revoked


async def test_a_refresh_token_that_is_not_replaced_stays(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    server.rotate = False
    store = logged_in(tmp_path, server)
    before = stored(store).refresh
    await login(store, server, client).get_token()
    assert stored(store).refresh == before
    granted = OAuthTokenResponse(access_token="a")
    assert tokens_from_response(granted, LoginTokens(refresh="kept"), NOW).refresh == "kept"


@pytest.mark.parametrize("trouble", [html(500), html(502), error("server_error", 503), garbage(), html(200), dropped()])
async def test_trouble_in_the_middle_loses_nothing(
    tmp_path: Path, server: OAuthServer, client: HttpClient, trouble: Answer
) -> None:
    store = logged_in(tmp_path, server)
    before = stored(store)
    server.trouble["token"] = [trouble]
    fresh = login(store, server, client)
    with pytest.raises(ProviderError) as caught:
        await fresh.get_token()
    assert caught.value.is_retryable, "the gateway is to try again"
    assert stored(store) == before
    assert await fresh.get_token() == stored(store).access != before.access


async def test_while_the_old_one_is_still_good_trouble_does_not_matter(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server, left=30)
    server.trouble["token"] = [html(500)]
    assert await login(store, server, client).get_token() == stored(store).access
    assert server.count("/token") == 1


async def test_a_login_that_is_over_is_told_once_and_not_asked_for_again(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server)
    server.revoked = True
    secret = stored(store)
    for _ in range(3):
        with pytest.raises(ProviderError, match="cannot be used any more") as caught:
            await login(store, server, client).get_token()
        assert caught.value.failure == "auth"
        assert caught.value.trouble.next == ("log in again: sylph connect chatgpt",)
    assert server.count("/token") == 1
    assert stored(store) == secret, "nothing is thrown away"


async def test_an_answer_that_was_lost_is_told_as_the_reason(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server)
    server.trouble["token"] = [too_late(html(500))]
    fresh = login(store, server, client)
    with pytest.raises(ProviderError):
        await fresh.get_token()
    assert entry_of(store).renewing == NOW
    with pytest.raises(ProviderError, match="was cut off before its answer was kept") as caught:
        await fresh.get_token()
    assert stored(store).refresh not in str(caught.value), "a server's words never show a token"
    assert server.revoked


async def test_another_refusal_does_not_end_the_login(tmp_path: Path, server: OAuthServer, client: HttpClient) -> None:
    store = logged_in(tmp_path, server)
    server.trouble["token"] = [error("invalid_client", 401)]
    with pytest.raises(ProviderError, match="invalid_client"):
        await login(store, server, client).get_token()
    assert not entry_of(store).ended
    assert await login(store, server, client).get_token() == stored(store).access


async def test_openai_wraps_its_errors(tmp_path: Path, server: OAuthServer, client: HttpClient) -> None:
    store = logged_in(tmp_path, server)
    told = {"error": {"message": "Your refresh token was already used.", "code": "refresh_token_reused"}}
    server.trouble["token"] = [Answer(401, json.dumps(told))]
    with pytest.raises(ProviderError, match="already used"):
        await login(store, server, client).get_token()
    assert "already used" in entry_of(store).ended


async def test_where_nothing_can_be_written_no_token_is_spent(
    tmp_path: Path, server: OAuthServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = logged_in(tmp_path, server)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CredentialFolder, "write_file", full)
    with pytest.raises(ProviderError, match="No space left"):
        await login(store, server, client).get_token()
    assert server.asked == []


async def test_a_token_that_cannot_be_written_is_kept_in_mind_and_written_later(
    tmp_path: Path, server: OAuthServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = logged_in(tmp_path, server)
    fresh, broken = login(store, server, client), [True]
    keep = CredentialStore.save_entry

    def failing(
        self: CredentialStore, entry: CredentialEntry, secret: bytes, *, anyhow: bool = False
    ) -> CredentialEntry:
        if broken[0]:
            raise StoreError("No space left.")
        return keep(self, entry, secret, anyhow=anyhow)

    monkeypatch.setattr(CredentialStore, "save_entry", failing)
    first = await fresh.get_token()
    assert first != stored(store).access
    broken[0] = False
    assert await fresh.get_token() == first == stored(store).access
    assert server.refreshes == 1


async def test_who_gives_up_waits_for_a_renewal_that_is_on_its_way(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server)
    before = stored(store)
    server.trouble["token"] = [Answer(200, server.grant().body, hang=1.0)]
    task = asyncio.create_task(login(store, server, client).get_token())
    await eventually(lambda: server.asked, "the renewal")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stored(store) != before
    assert stored(store).refresh in server.good


async def test_a_clock_that_jumps_back_costs_one_refusal_and_no_more(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server, left=-1)
    clock = FakeClock(round(NOW * 1000))
    clock.advance(-86_400)
    fresh = login(store, server, client, clock)
    stale = await fresh.get_token()
    assert server.asked == [], "by this clock it is still good"
    assert await fresh.renew_token(stale) == stored(store).access != stale


async def test_a_login_that_was_made_anew_elsewhere_is_taken(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    store = logged_in(tmp_path, server, left=3600)
    fresh = login(store, server, client)
    stale = await fresh.get_token()
    logged_in(tmp_path, server, left=3600)
    assert await fresh.renew_token(stale) == stored(store).access
    assert server.refreshes == 0


KILLED = {
    "before it is asked for": "store.note",
    "between receiving and writing": "store.keep",
    "between writing and renaming": "rename",
    "after all of it": "done",
}


@pytest.mark.parametrize("moment", KILLED.values(), ids=KILLED.keys())
async def test_killed_at_any_moment_nothing_is_lost_that_could_be_kept(
    tmp_path: Path, server: OAuthServer, client: HttpClient, moment: str
) -> None:
    store = logged_in(tmp_path, server, left=-1e9)
    process = await child(tmp_path, server, moment)
    await process.communicate()
    assert process.returncode == -signal.SIGKILL
    fresh = login(store, server, client)
    if moment == "store.keep":
        # The server has given out the next token, and nobody has it: that is told as what it is.
        with pytest.raises(ProviderError, match="was cut off before its answer was kept"):
            await fresh.get_token()
        return
    await fresh.renew_token(await fresh.get_token())
    assert stored(store).refresh in server.good
    assert not server.revoked


async def test_killed_before_writing_a_server_that_does_not_rotate_goes_on(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    server.rotate = False
    store = logged_in(tmp_path, server, left=-1e9)
    await (await child(tmp_path, server, "store.keep")).communicate()
    assert await login(store, server, client).get_token() in server.access


async def child(home: Path, server: OAuthServer, kill: str = "") -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(home / "credentials"), server.url, kill,
        stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2],
    )  # fmt: skip


CHILD = """
import asyncio, os, pathlib, signal, sys
from functools import partial
from msgspec.structs import replace
from sylph.core.clock import SystemClock
from sylph.net.http_client import HttpClient
from sylph.providers.credentials.store import CredentialStore
from sylph.providers.logins import chatgpt
from sylph.providers.logins.token_refresh import RefreshingTokenSource

home, url, kill = sys.argv[1:]
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
store = CredentialStore(pathlib.Path(home), keep="file")
if kill == "store.note":
    store.update_entry = die
if kill == "store.keep":
    store.save_entry = die
if kill == "rename":
    kept, rename = store.save_entry, pathlib.Path.replace
    def keep(*given, **named):
        pathlib.Path.replace = die
        return kept(*given, **named)
    store.save_entry = keep

async def main():
    service = replace(chatgpt.SERVICE, client_id="tests", token_url=url + "/token")
    client = HttpClient()
    renew = partial(chatgpt.renew, service, client, clock=SystemClock())
    print(await RefreshingTokenSource(store, "chatgpt", renew).get_token())
    await client.close()
    if kill == "done":
        die()

asyncio.run(main())
"""


async def test_copilot_lends_a_short_token_for_github_s(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    github = json.loads(server.grant().body)["access_token"]
    store = CredentialStore(tmp_path / "credentials", keep="file")
    store.save_entry(CredentialEntry(provider="copilot", kind="login"), msgspec.json.encode(LoginTokens(origin=github)))
    clock = FakeClock(round(NOW * 1000))
    renew = partial(copilot.renew, service(server, copilot.SERVICE), client, clock=clock)
    fresh = RefreshingTokenSource(store, "copilot", renew, clock=clock)
    token = await fresh.get_token()
    assert token.startswith("copilot-")
    assert await fresh.get_token() == token
    assert server.exchanges == 1
    assert server.asked[0].headers["authorization"] == f"token {github}"
    assert "vscode" not in str(server.asked[0].headers), "it does not pass itself off as an editor"
    clock.advance(7200)
    assert await fresh.get_token() != token
    server.access.clear()
    with pytest.raises(ProviderError, match="the login to GitHub has ended"):
        await fresh.renew_token(await fresh.get_token())


async def test_a_github_token_that_ends_is_renewed_first(
    tmp_path: Path, server: OAuthServer, client: HttpClient
) -> None:
    granted = json.loads(server.grant().body)
    store = CredentialStore(tmp_path / "credentials", keep="file")
    old = LoginTokens(origin="ended", refresh=granted["refresh_token"])
    store.save_entry(CredentialEntry(provider="copilot", kind="login"), msgspec.json.encode(old))
    clock = FakeClock(round(NOW * 1000))
    renew = partial(copilot.renew, service(server, copilot.SERVICE), client, clock=clock)
    server.trouble["exchange"] = [too_late(error("x", 401)), html(500)]
    fresh = RefreshingTokenSource(store, "copilot", renew, clock=clock)
    with pytest.raises(ProviderError):
        await fresh.get_token()
    entry = store.read_entry("copilot", "login")
    assert entry
    kept = msgspec.json.decode(store.read_secret(entry), type=LoginTokens)
    assert kept.refresh in server.good, "the first step was on the disk before the second failed"
    assert (await fresh.get_token()).startswith("copilot-")
    assert server.refreshes == 1


async def test_no_copilot_in_the_account(tmp_path: Path, server: OAuthServer, client: HttpClient) -> None:
    for status in (403, 404):
        server.trouble["exchange"] = [html(status)]
        with pytest.raises(Exception, match="does the account have Copilot"):
            await copilot.exchange_token(service(server, copilot.SERVICE), client, "gh", FakeClock())


def test_a_jwt_that_is_none_says_nothing() -> None:
    for text in ("", "a.b.c", "a.b", "....", "\xff.\xff.\xff", "a.W10.c"):
        assert jwt_claims(text) == {}
        assert jwt_lifetime(text) is None
