"""A real browser: logging in with a link, and another site's page that tries everything it can."""

import shutil
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from tests.http.knocking import Home, House, open_house
from tests.patience import PATIENCE

from sylph.tools.web.browser.chromium import BROWSER_NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

playing = pytest.importorskip("playwright.sync_api", reason="the extra [browser] is not installed")
PROGRAM = next(filter(None, map(shutil.which, BROWSER_NAMES)), "")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no Chromium is installed")

# What a page tries; each way tells whether it got through.
TRIES = """async (base) => {
  const tried = {};
  const attempt = async (name, act) => {
    try { tried[name] = await act(); } catch (error) { tried[name] = "refused"; }
  };
  const post = { method: "POST", credentials: "include", body: "{}" };
  await attempt("read", async () => (await fetch(base + "/api/v1/login", { credentials: "include" })).status);
  await attempt("post", async () =>
    (await fetch(base + "/api/v1/links", { ...post, headers: { "Content-Type": "application/json" } })).status);
  await attempt("blind post", async () =>
    (await fetch(base + "/api/v1/links", { ...post, mode: "no-cors" })).type);
  await attempt("script", () => new Promise((yes, no) => {
    const tag = document.createElement("script");
    tag.onload = () => yes("loaded"); tag.onerror = no; tag.src = base + "/login.js";
    document.head.append(tag);
  }));
  await attempt("websocket", () => new Promise((yes, no) => {
    const socket = new WebSocket(base.replace("http", "ws") + "/ws");
    socket.onopen = () => yes("opened"); socket.onerror = no;
  }));
  return tried;
}"""


class Elsewhere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>elsewhere")

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with open_house(Home(tmp_path_factory.mktemp("home")).configure("")) as opened:
        yield opened


@pytest.fixture(scope="module")
def elsewhere() -> Generator[int]:
    """Another server on this machine: same site to a browser, and still somebody else."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    running = threading.Thread(target=server.serve_forever)
    running.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    running.join()


@pytest.fixture(scope="module")
def browser() -> Generator["Browser"]:
    with playing.sync_playwright() as started_with:
        started = started_with.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield started
        started.close()


def window(browser: "Browser", *, ignore_https_errors: bool = False) -> "BrowserContext":
    made = browser.new_context(ignore_https_errors=ignore_https_errors)
    made.set_default_timeout(PATIENCE * 1000)
    return made


def test_a_link_logs_the_browser_in_and_leaves_no_trace(server: House, browser: "Browser") -> None:
    context = window(browser)
    page = context.new_page()
    asked, wrong = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    code = server.link()
    page.goto("about:blank")
    page.goto(f"{server.url}/login#{code}")
    page.wait_for_url(f"{server.url}/")
    assert not any(code in url for url in asked)
    page.go_back()
    assert page.url == "about:blank", "the app stands in the history, and nothing of the link"
    page.goto(f"{server.url}/login")
    page.get_by_text("This login is called “link” and may everything.").wait_for()
    # Where the app is not built, its place says so with 503.
    assert [said for said in wrong if "503" not in said] == [], "no policy is broken by our own page"
    (cookie,) = map(dict, context.cookies())
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("sylph", True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    page.get_by_text("You are logged out.").wait_for()
    assert context.cookies() == []
    context.close()


def test_a_key_logs_in_by_hand_and_a_wrong_one_is_told(server: House, browser: "Browser") -> None:
    page = window(browser).new_page()
    page.goto(f"{server.url}/login")
    page.get_by_label("Your key").fill("sylph_wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("The key is not known").wait_for()
    page.get_by_label("Your key").fill(server.token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{server.url}/")
    page.goto(f"{server.url}/login")
    page.get_by_text("This login is called “tests”").wait_for()
    page.context.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_another_page_gets_nowhere(server: House, browser: "Browser", elsewhere: int, name: str) -> None:
    """Also one on the same machine, whose requests carry the cookie: to a browser it is the same site."""
    context = window(browser)
    page = context.new_page()
    page.goto(f"{server.url}/login#{server.link()}")
    page.wait_for_url(f"{server.url}/")
    before = len(server.ask("GET", "/api/v1/keys").json["items"])
    page.goto(f"http://{name}:{elsewhere}/")
    tried = page.evaluate(TRIES, server.url)
    assert tried.pop("blind post") in ("opaque", "refused"), "it is sent, and told nothing"
    assert set(tried.values()) == {"refused"}, tried
    assert len(server.ask("GET", "/api/v1/keys").json["items"]) == before, "and nothing was done"
    context.close()


def test_the_same_under_tls(tmp_path_factory: pytest.TempPathFactory, browser: "Browser") -> None:
    home = Home(tmp_path_factory.mktemp("secure")).configure("")
    with open_house(home, "--tls", "self") as server:
        context = window(browser, ignore_https_errors=True)
        page = context.new_page()
        page.goto(f"{server.url}/login#{server.link()}")
        page.wait_for_url(f"{server.url}/")
        (cookie,) = map(dict, context.cookies())
        assert (cookie["name"], cookie["secure"], cookie["httpOnly"]) == ("__Host-sylph", True, True)
        page.goto(f"{server.url}/login")
        page.get_by_role("button", name="Log out").click()
        page.get_by_text("You are logged out.").wait_for()
        context.close()


def test_a_login_that_a_page_asked_for_goes_back_to_it_and_nowhere_else(server: House, browser: "Browser") -> None:
    page = window(browser).new_page()
    page.goto(f"{server.url}/docs")
    assert page.url == f"{server.url}/login?next=/docs"
    page.get_by_label("Your key").fill(server.token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{server.url}/docs")
    for goal in ("//example.test", "/\\example.test", "https://example.test", "javascript:alert(1)", "/login"):
        page.goto(f"{server.url}/login?next={goal}")
        page.get_by_text("You are logged in").wait_for()
        assert page.url.startswith(f"{server.url}/login")
        assert page.get_by_text("Go on").evaluate("link => link.href") == f"{server.url}/"
    page.context.close()


def test_a_used_link_in_a_browser_that_is_logged_in_says_so(server: House, browser: "Browser") -> None:
    page, code = window(browser).new_page(), server.link()
    page.goto(f"{server.url}/login#{code}")
    page.wait_for_url(f"{server.url}/")
    page.goto("about:blank")
    page.goto(f"{server.url}/login#{code}")
    page.get_by_text("The link was used or is too old, but that does not matter").wait_for()
    page.get_by_text("Go on").click()
    page.wait_for_url(f"{server.url}/")
    page.context.close()
