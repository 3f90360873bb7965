"""Between the page and the server: cuts, restarts, ended logins, two tabs, no network, errors of the page."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from playwright.async_api import BrowserContext, Page, expect
from tests.browser.person import Person
from tests.http.served import Served
from tests.model_server import say
from tests.patience import PATIENCE


@asynccontextmanager
async def restarted(served: Served) -> AsyncGenerator[None, None]:
    """The same server anew, at the same address."""
    process = await served.sylph.start("serve", "--port", served.url.rpartition(":")[2])
    try:
        yield
    finally:
        process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


async def killed(served: Served) -> None:
    served.kill()
    await served.process.wait()


@pytest.mark.alone
@pytest.mark.script(say("Before."), say("After."))
async def test_a_killed_server_is_missed_and_found_again(person: Person) -> None:
    await person.begin("hello")
    await person.see("Before.")
    await killed(person.served)
    await person.see("The connection to the server is lost.")
    async with restarted(person.served):
        await person.page.get_by_role("button", name="Try now").click()
        await person.see("The server was restarted.")
        await expect(person.page.get_by_text("The connection to the server is lost.")).to_have_count(0)
        await person.say("and again")
        await person.see("After.")
        await expect(person.page.get_by_role("log").get_by_text("Before.")).to_have_count(1)


async def test_a_login_that_ended_is_renewed_in_place(person: Person) -> None:
    id = await person.begin("hello")
    await person.see("Hello from the model.")
    await person.page.get_by_label("Message", exact=True).fill("half a thought")
    keys: list[dict[str, Any]] = (await person.served.client.get("/api/v1/keys")).json()["items"]
    for key in keys:
        if key["kind"] == "cookie":
            assert (await person.served.client.delete(f"/api/v1/keys/{key['id']}")).status_code < 300
    box = person.page.get_by_role("dialog", name="Your login has ended")
    await expect(box).to_be_visible()
    await box.get_by_label("Your key").fill("sylph_wrong")
    await box.get_by_role("button", name="Log in").click()
    await expect(box.get_by_role("alert")).to_contain_text("not known")
    await box.get_by_label("Your key").fill(person.served.token)
    await box.get_by_role("button", name="Log in").click()
    await expect(box).to_have_count(0)
    await expect(person.page).to_have_url(re.compile(id))
    await expect(person.page.get_by_label("Message", exact=True)).to_have_value("half a thought")
    await person.say("on we go")
    await expect(person.page.get_by_role("log").get_by_text("Hello from the model.")).to_have_count(2)
    person.complaints = [said for said in person.complaints if "HTTP Authentication failed" not in said]


async def test_two_tabs_see_the_same_and_leave_together(person: Person, context: BrowserContext) -> None:
    id = await person.begin("hello")
    await person.see("Hello from the model.")
    other = await context.new_page()
    await other.goto(f"/chat/{id}")
    await expect(other.get_by_role("log").get_by_text("Hello from the model.")).to_be_visible()
    await person.served.client.patch(f"/api/v1/sessions/{id}", json={"title": "Renamed elsewhere"})
    for page in (person.page, other):
        await expect(page.get_by_role("navigation").get_by_role("link", name="Renamed elsewhere")).to_be_visible()
    await person.page.get_by_role("button", name="Log out").click()
    await expect(person.page.get_by_role("heading", name="Log in to Sylph")).to_be_visible()
    # Nothing that was seen stays; and whoever comes in again comes in everywhere.
    await expect(other.get_by_role("heading", name="Log in to Sylph")).to_be_visible()
    await expect(other.get_by_text("Hello from the model.")).to_have_count(0)
    made = await context.request.post("/api/v1/login", data={"key": person.served.token})
    assert made.ok
    await person.page.reload()
    await expect(other.get_by_role("log").get_by_text("Hello from the model.")).to_be_visible()


@pytest.mark.alone
async def test_the_app_is_installable_and_opens_without_its_server(person: Person) -> None:
    page = person.page
    await page.evaluate("navigator.serviceWorker.ready")
    await person.until(lambda: page.evaluate("!!navigator.serviceWorker.controller"))
    devtools = await page.context.new_cdp_session(page)
    asked = cast("Callable[[str], Awaitable[dict[str, Any]]]", devtools.send)  # pyright: ignore[reportUnknownMemberType]
    manifest = await asked("Page.getAppManifest")
    assert (manifest["errors"], "manifest.webmanifest" in manifest["url"]) == ([], True)
    errors = await asked("Page.getInstallabilityErrors")
    # Windows of tests keep nothing, which is all that stands in the way.
    assert {error["errorId"] for error in errors["installabilityErrors"]} <= {"in-incognito"}
    kept: list[str] = await page.evaluate(KEPT)
    assert "/" in kept
    assert not [path for path in kept if path.startswith(("/api", "/v1", "/login"))]
    await killed(person.served)
    await page.goto("/dashboard")
    await person.see("The server does not answer.")
    async with restarted(person.served):
        await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()


async def test_only_this_build_and_the_one_before_are_kept(person: Person) -> None:
    page = person.page
    await page.evaluate("navigator.serviceWorker.ready")
    await page.evaluate("Promise.all(['shell-a', 'shell-b', 'shell-c'].map(name => caches.open(name)))")
    await page.evaluate("navigator.serviceWorker.getRegistration().then(known => known.unregister())")
    await page.evaluate(
        "caches.keys().then(all => Promise.all(all.filter(n => !/-[abc]$/.test(n)).map(n => caches.delete(n))))"
    )
    await page.reload()
    await page.evaluate("navigator.serviceWorker.ready")

    async def clean() -> bool:
        names: list[str] = await page.evaluate("caches.keys()")
        return len(names) == 2 and names[0] == "shell-c" and bool(re.fullmatch("shell-[0-9a-f]{12}", names[1]))

    await person.until(clean)


@pytest.mark.alone
async def test_another_app_on_the_server_is_noticed_and_loaded_when_nothing_is_lost(person: Person) -> None:
    page = person.page
    await page.evaluate("window.old = true")
    html = (await person.served.bare.get("/")).text
    other = re.sub(r"/assets/index-[^\"]+\.js", "/assets/index-other.js", html)

    async def changed(route: Any) -> None:
        navigates = route.request.is_navigation_request()
        await (route.continue_() if navigates else route.fulfill(body=other, content_type="text/html"))

    await page.route(person.served.url + "/", changed)
    await page.get_by_label("Message", exact=True).fill("half a thought")
    await killed(person.served)
    async with restarted(person.served):
        await person.see("There is a new version of this page.")
        assert await page.evaluate("window.old")
        await page.get_by_role("button", name="Load it now").click()
        await person.until(lambda: page.evaluate("!window.old"))
        await expect(page.get_by_label("Message", exact=True)).to_have_value("half a thought")


async def reported(served: Served, text: str) -> list[dict[str, Any]]:
    lines = (await served.client.get("/api/v1/logs?level=error")).json()["lines"]
    return [line for line in lines if text in line["event"]]


async def test_an_error_of_the_page_is_shown_and_reported_once(person: Person) -> None:
    page: Page = person.page
    for _ in range(3):
        await page.evaluate("void setTimeout(() => { throw new TypeError('made by a test') })")
    await person.see("Something in this page went wrong.")
    await person.see("made by a test")

    async def told() -> bool:
        return bool(await reported(person.served, "made by a test"))

    await person.until(told)
    await page.evaluate("void Promise.reject(new Error('a promise not kept'))")
    await person.see("a promise not kept")
    assert len(await reported(person.served, "made by a test")) == 1
    person.complaints.clear()


KEPT = """async () => {
  const paths = async (name) => (await (await caches.open(name)).keys()).map((one) => new URL(one.url).pathname);
  return (await Promise.all((await caches.keys()).map(paths))).flat();
}"""
