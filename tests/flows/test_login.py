"""Logging in through the real program: with a browser, by a code, and renewed while a turn runs."""

import asyncio
import re
from urllib.parse import urlsplit

from tests.flows.program import Done, Model, Sylph, finished
from tests.flows.test_connect import at, bearer, configure
from tests.model_server import Asked, ModelServer, Step, call, fail, say
from tests.oauth_server import ACCOUNT, OAuthServer, error, html, said
from tests.patience import PATIENCE
from tests.providers.test_oauth import visited

from sylph.providers.logins.browser_login import pkce_challenge


async def test_without_a_client_id_a_login_is_off(sylph: Sylph) -> None:
    done = await sylph.run("connect", "chatgpt", "--yes")
    assert done.code == 2
    assert "terms of use" in done.err
    assert "logins.chatgpt.client_id" in done.err
    configure(sylph, '[logins.chatgtp]\nclient_id = "x"\n')
    done = await sylph.run("hi")
    assert (done.code, "Did you mean 'chatgpt'?" in done.err) == (2, True)
    configure(sylph, '[logins.copilot]\nclient_secret = "canary-0123456789abcdef"\n')
    for words in (("config",), ("config", "--json"), ("config", "get", "logins.copilot.client_secret")):
        shown = await sylph.run(*words)
        assert "…cdef" in shown.out
        assert "canary" not in shown.out


async def test_copilot_by_a_code(sylph: Sylph, model: Model) -> None:
    async with OAuthServer() as oauth:
        server = await model([say("Hello.")])
        configure(sylph, at(server, "copilot"), oauth.settings("copilot"))
        refused = await sylph.run("connect", "copilot")
        assert (refused.code, oauth.asked) == (3, []), "nothing happens before the terms are agreed to"
        oauth.trouble["token"] = [error("authorization_pending")]
        done = await sylph.run("connect", "copilot", "--yes")
        assert done.code == 0, done.err
        assert "ABCD-EFGH" in done.err
        assert "you are logged in" in done.out
        assert (await sylph.run("-m", "copilot/scripted", "hi")).out == "Hello.\n"
        assert bearer(server.requests[0]).startswith("copilot-")
        assert oauth.exchanges == 1, "the short token is kept as long as it is good"
        shown = (await sylph.run("connect", "status")).out + (await sylph.run("doctor")).out
        assert not any(token in shown for token in (*oauth.access, *oauth.good))


async def test_copilot_without_a_subscription(sylph: Sylph) -> None:
    async with OAuthServer() as oauth:
        configure(sylph, oauth.settings("copilot"))
        oauth.trouble["exchange"] = [html(404)]
        done = await sylph.run("connect", "copilot", "--yes")
        assert done.code == 1
        assert "does the account have Copilot" in done.err


async def log_in(sylph: Sylph, provider: str = "chatgpt", *more: str) -> Done:
    """Plays the browser: opens the link that is printed, and goes where it is sent."""
    process = await sylph.start("connect", provider, "--yes", "--no-browser", *more)
    assert process.stderr
    text = ""
    while not (link := re.search(r"http://\S+/authorize\S+", text)):
        text += (await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode()
    _, back, _ = await visited(link[0])
    assert urlsplit(back).hostname == "127.0.0.1"
    await visited(back)
    return await finished(process)


async def test_each_service_has_the_other_way_too(sylph: Sylph) -> None:
    async with OAuthServer() as oauth:
        code = oauth.settings("chatgpt", device_url=f"{oauth.url}/api/usercode")
        configure(sylph, oauth.settings("copilot", client_secret="a-secret"), code)
        done = await log_in(sylph, "copilot", "--browser")
        assert "copilot: you are logged in" in done.out, done.err
        assert next(each for each in oauth.asked if each.path == "/token").fields["client_secret"] == "a-secret"
        oauth.trouble["api/usercode"] = [said(device_auth_id="d", user_code="TYPE-THIS", interval=1)]
        oauth.trouble["api/token"] = [html(403), said(authorization_code="c", code_verifier="v")]
        oauth.codes["c"] = {
            "redirect_uri": f"{oauth.url}/deviceauth/callback",
            "code_challenge": pkce_challenge("v"),
            "code_challenge_method": "S256",
        }
        done = await sylph.run("connect", "chatgpt", "--yes", "--device")
        assert "chatgpt: you are logged in as who@example.test" in done.out, done.err
        assert "TYPE-THIS" in done.err


def chatgpt(oauth: OAuthServer, server: ModelServer, dialect: str = "chat") -> tuple[str, str]:
    return at(server, "chatgpt", dialect), oauth.settings("chatgpt", redirect="http://127.0.0.1:0/auth/callback")


async def test_chatgpt_with_a_browser_and_renewed_in_the_middle_of_a_run(sylph: Sylph, model: Model) -> None:
    async with OAuthServer() as oauth:
        ended: set[str] = set()
        steps = iter([call("list", path="."), say("Done."), say("Again.")])

        def script(asked: Asked) -> Step:
            if bearer(asked) in ended or bearer(asked) not in oauth.access:
                return fail(401, f"Your token {bearer(asked)} has expired")
            step = next(steps)
            if step.calls:
                ended.add(bearer(asked))
            return step

        server = await model(script)
        configure(sylph, *chatgpt(oauth, server))
        done = await log_in(sylph)
        assert done.code == 0, done.err
        assert "chatgpt: you are logged in as who@example.test" in done.out
        run = await sylph.run("-m", "chatgpt/scripted", "look")
        assert (run.code, run.out) == (0, "Done.\n"), run.err
        assert oauth.refreshes == 1
        assert [bearer(asked) for asked in server.requests].count(next(iter(ended))) == 2
        assert server.requests[0].headers["chatgpt-account-id"] == ACCOUNT
        assert (await sylph.run("-m", "chatgpt/scripted", "look")).out == "Again.\n"
        assert oauth.refreshes == 1
        # Now the login is over for good.
        oauth.revoked = True
        ended.update(oauth.access)
        over = await sylph.run("-m", "chatgpt/scripted", "look")
        assert over.code == 4
        assert "log in again: sylph connect chatgpt" in over.err
        assert not any(token in over.err for token in (*oauth.access, *oauth.good, *oauth.spent))
        assert "log in again" in (await sylph.run("connect", "status")).out
        assert "warn  keys" in (await sylph.run("doctor")).out


async def test_two_programs_at_once_renew_once(sylph: Sylph) -> None:
    script = [say("Hello.")] * 3
    async with OAuthServer(lifetime=30) as oauth, ModelServer(script, dialects=["responses"]) as server:
        configure(sylph, *chatgpt(oauth, server, "responses"))
        await log_in(sylph)
        oauth.lifetime = 3600
        both = [await sylph.start("-m", "chatgpt/scripted", "hi") for _ in range(3)]
        done = await asyncio.gather(*(finished(each) for each in both))
        assert [one.out for one in done] == ["Hello.\n"] * 3, [one.err for one in done]
        assert oauth.refreshes == 1
        assert not oauth.revoked
        assert {asked.headers["chatgpt-account-id"] for asked in server.requests} == {ACCOUNT}


async def test_a_browser_login_that_is_given_up(sylph: Sylph, model: Model) -> None:
    async with OAuthServer() as oauth:
        configure(sylph, *chatgpt(oauth, await model([])))
        process = await sylph.start("connect", "chatgpt", "--yes", "--browser", "--no-browser")
        assert process.stderr
        while b"Waiting" not in await asyncio.wait_for(process.stderr.readline(), PATIENCE):
            pass
        process.send_signal(2)
        done = await finished(process)
        assert (done.code, "Traceback" in done.err) == (130, False)
