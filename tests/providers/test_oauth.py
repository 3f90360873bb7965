"""Logging in: by a code that is typed elsewhere, and with a browser, against a server that also misbehaves."""

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace
from tests.oauth_server import ACCOUNT, Answer, OAuthServer, dropped, error, garbage, hang, html, said

from sylph.core.errors import ProviderError, SylphError, UserError
from sylph.net.http_client import HttpClient
from sylph.providers.logins import chatgpt, copilot, oauth
from sylph.providers.logins.browser_login import browser_login, pkce_challenge
from sylph.providers.logins.device_code import DeviceCode, device_login
from sylph.providers.logins.oauth import OAuthRefusal, OAuthService
from sylph.testing import FakeClock


class Hasty(FakeClock):
    """Waits in no time, and remembers how long."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float, what: str = "") -> None:  # noqa: ARG002 - the clock's signature
        self.waits.append(seconds)
        self.advance(seconds)


@pytest.fixture
async def server() -> AsyncIterator[OAuthServer]:
    async with OAuthServer() as server:
        yield server


def service(server: OAuthServer, base: OAuthService = copilot.SERVICE, **more: str) -> OAuthService:
    return replace(base, client_id="tests", **{**server.endpoints(), **more})


def nobody(_: DeviceCode) -> None:
    return


async def by_device(server: OAuthServer, client: HttpClient, clock: Hasty | None = None) -> oauth.OAuthTokenResponse:
    return await device_login(service(server), client, nobody, clock or Hasty())


async def test_a_device_login_waits_as_slowly_as_it_is_told(server: OAuthServer, client: HttpClient) -> None:
    shown: list[DeviceCode] = []
    server.trouble["token"] = [error("authorization_pending"), error("slow_down"), error("authorization_pending", 200)]
    clock = Hasty()
    granted = await device_login(service(server), client, shown.append, clock)
    assert granted.access_token in server.access
    assert [code.user_code for code in shown] == ["ABCD-EFGH"]
    assert clock.waits == [1, 1, 6, 6]
    assert "device-1" not in repr(shown)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error("expired_token"), "too old by now"),
        (error("access_denied"), "was declined in the browser"),
        (error("unsupported_grant_type"), "unsupported_grant_type"),
        (error("incorrect_client_credentials", 200), "incorrect_client_credentials"),
    ],
)
async def test_a_device_login_that_is_refused(
    server: OAuthServer, client: HttpClient, answer: Answer, words: str
) -> None:
    server.trouble["token"] = [error("authorization_pending"), answer]
    with pytest.raises(UserError, match=words) as caught:
        await by_device(server, client)
    assert "sylph connect copilot" in str(caught.value.trouble.next)


async def test_a_code_that_nobody_types_ends(server: OAuthServer, client: HttpClient) -> None:
    server.approve = False
    clock = Hasty()
    server.interval = 100
    with pytest.raises(UserError, match="was not used in time"):
        await by_device(server, client, clock)
    assert sum(clock.waits) == 900


@pytest.mark.parametrize("trouble", [html(502), html(200), garbage(), dropped(), html(429)])
async def test_trouble_while_waiting_is_survived(server: OAuthServer, client: HttpClient, trouble: Answer) -> None:
    server.trouble["token"] = [trouble, error("authorization_pending"), trouble]
    assert (await by_device(server, client)).access_token in server.access


@pytest.mark.parametrize("trouble", [html(502), garbage()])
async def test_a_server_that_only_talks_nonsense_is_given_up_on(
    server: OAuthServer, client: HttpClient, trouble: Answer
) -> None:
    server.trouble["token"] = [trouble] * 9
    with pytest.raises(ProviderError):
        await by_device(server, client)
    assert server.count("/token") == 5


@pytest.mark.parametrize(
    "trouble",
    [said(), said(user_code="x"), said(user_code="x", device_code="y", verification_uri="javascript:alert(1)"),
     said(user_code="\x1b[2J", device_code="y", verification_uri="https://x"), html(), garbage(), Answer(200, "[]")],
)  # fmt: skip
async def test_without_a_code_there_is_nothing_to_wait_for(
    server: OAuthServer, client: HttpClient, trouble: Answer
) -> None:
    server.trouble["device"] = [trouble]
    with pytest.raises(SylphError):
        await by_device(server, client)
    assert server.count("/token") == 0


async def test_a_server_that_hangs_is_not_waited_for(
    server: OAuthServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth, "SECONDS", 0.1)
    server.trouble["device"] = [hang()]
    with pytest.raises(ProviderError, match="did not answer"):
        await by_device(server, client)


async def test_openai_s_own_way_with_device_codes(server: OAuthServer, client: HttpClient) -> None:
    told = replace(
        service(server, chatgpt.SERVICE), device_url=f"{server.url}/api/usercode", token_url=f"{server.url}/token"
    )
    shown: list[DeviceCode] = []
    server.trouble["api/usercode"] = [said(device_auth_id="d", user_code="CODE", interval="2")]
    pending = {"error": {"code": "deviceauth_authorization_unknown", "message": "wait"}}
    server.trouble["api/token"] = [
        Answer(403, json.dumps(pending)),
        html(404),
        said(authorization_code="code-1", code_verifier="v"),
    ]
    server.codes["code-1"] = {
        "redirect_uri": f"{server.url}/deviceauth/callback",
        "code_challenge": pkce_challenge("v"),
        "code_challenge_method": "S256",
    }
    clock = Hasty()
    granted = await chatgpt.device_login(told, client, shown.append, clock)
    assert granted.access_token in server.access
    assert shown[0].verification_uri == f"{server.url}/codex/device"
    assert clock.waits == [2, 2, 2]
    assert chatgpt.read_account(granted) == ("who@example.test", {"chatgpt-account-id": ACCOUNT})


async def visited(url: str) -> tuple[int, str, str]:
    """What a browser gets: the status, where it is sent, and the page."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    target = f"{place.path}?{place.query}"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    size = next((int(line[16:]) for line in head.split("\r\n") if line.lower().startswith("content-length: ")), 0)
    page = (await reader.readexactly(size)).decode()
    writer.close()
    location = next((line[10:] for line in head.split("\r\n") if line.lower().startswith("location: ")), "")
    return int(head.split(" ")[1]), location, page


async def test_a_browser_login(server: OAuthServer, client: HttpClient) -> None:
    async def visit(url: str) -> None:
        status, back, _ = await visited(url)
        assert status == 302
        assert parse_qs(urlsplit(url).query)["code_challenge_method"] == ["S256"]
        assert "heard of your login" in (await visited(back))[2]

    granted = await browser_login(service(server), client, visit)
    assert granted.access_token in server.access


async def test_a_page_with_another_state_is_sent_away_and_the_waiting_goes_on(
    server: OAuthServer, client: HttpClient
) -> None:
    async def visit(url: str) -> None:
        _, back, _ = await visited(url)
        right = parse_qs(urlsplit(back).query)["state"][0]
        for wrong in ("", right[:-1], right + "x", "\xff", "%00"):
            status, _, page = await visited(f"{back.partition('?')[0]}?code=evil&state={wrong}")
            assert (status, "Nothing was done" in page) == (400, True)
        assert (await visited(back.replace("/callback", "/other")))[0] == 404
        await visited(back)

    assert (await browser_login(service(server), client, visit)).access_token in server.access


async def test_a_second_tab_does_no_harm(server: OAuthServer, client: HttpClient) -> None:
    async def visit(url: str) -> None:
        _, one, _ = await visited(url)
        _, two, _ = await visited(url)
        first, second = await visited(one), await visited(two)
        assert "heard of your login" in first[2]
        assert "over already" in second[2]

    assert (await browser_login(service(server), client, visit)).access_token in server.access


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("error=access_denied", "was declined in the browser"),
        ("error=server_error&error_description=%3Cb%3Eoops", "server_error: <b>oops"),
        ("nothing=1", "no code came"),
    ],
)
async def test_a_refusal_in_the_browser(server: OAuthServer, client: HttpClient, told: str, words: str) -> None:
    async def visit(url: str) -> None:
        _, back, _ = await visited(url)
        state = parse_qs(urlsplit(back).query)["state"][0]
        page = (await visited(f"{back.partition('?')[0]}?{told}&state={state}"))[2]
        assert "<b>" not in page

    with pytest.raises(OAuthRefusal, match=words):
        await browser_login(service(server), client, visit)
    assert server.count("/token") == 0


async def test_nobody_comes(server: OAuthServer, client: HttpClient) -> None:
    strangers: list[asyncio.StreamWriter] = []

    async def visit(url: str) -> None:
        # Somebody connects and says nothing, somebody else says too much.
        port = urlsplit(parse_qs(urlsplit(url).query)["redirect_uri"][0]).port
        strangers.extend([(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(2)])
        strangers[1].write(b"GET /" + b"x" * 100_000)

    with pytest.raises(UserError, match="Nobody logged in"):
        await browser_login(service(server), client, visit, seconds=0.3)
    for stranger in strangers:
        stranger.close()


async def test_a_port_that_is_taken_is_told(server: OAuthServer, client: HttpClient) -> None:
    async def visit(_: str) -> None:
        raise AssertionError("there is nobody to come back to")

    told = service(server, redirect=f"http://localhost:{server.port}/auth/callback")
    with pytest.raises(UserError, match=f"port {server.port}") as caught:
        await browser_login(told, client, visit)
    assert "--device" in str(caught.value.trouble.next)


async def test_a_code_without_its_proof_is_worth_nothing(server: OAuthServer, client: HttpClient) -> None:
    server.codes["stolen"] = {
        "redirect_uri": "x", "code_challenge": pkce_challenge("right"), "code_challenge_method": "S256"
    }  # fmt: skip
    fields = {"grant_type": "authorization_code", "code": "stolen", "redirect_uri": "x", "code_verifier": "wrong"}
    with pytest.raises(OAuthRefusal, match="PKCE"):
        await oauth.request_token(service(server), client, fields)


@pytest.mark.parametrize(
    "url", ["http://auth.example/token", "ftp://127.0.0.1/", "auth.example", "http://127.0.0.1.evil/"]
)
async def test_secrets_go_only_over_tls_or_to_this_machine(server: OAuthServer, client: HttpClient, url: str) -> None:
    with pytest.raises(UserError, match="https://"):
        await oauth.request_token(service(server, token_url=url), client, {"code": "x"})


def test_the_challenge_is_that_of_the_rfc() -> None:
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert pkce_challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
