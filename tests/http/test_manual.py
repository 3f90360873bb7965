"""`/docs` and `/redoc` in a real browser, which reaches nothing but this server."""

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page, async_playwright
from tests.http.as_model import Talk, talking
from tests.patience import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not CHROMIUM, reason="There is no Chromium on this machine."),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Talk, None]:
    async with talking(tmp_path_factory.mktemp("manual")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def browser() -> AsyncGenerator[BrowserContext, None]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await started.new_context()
        context.set_default_timeout(PATIENCE * 1000)
        yield context
        await started.close()


async def opened(talk: Talk, browser: BrowserContext, path: str) -> tuple[Page, list[str], list[str]]:
    """A page of somebody who has logged in, all that it asked for, and all that went wrong in it."""
    page = await browser.new_page()
    asked, wrong = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(f"{talk.served.url}/login")
    await page.fill("#key", talk.served.token)
    await page.click("#enter button")
    await page.wait_for_url(f"{talk.served.url}/")
    wrong.clear()
    await page.goto(f"{talk.served.url}{path}")
    return page, asked, wrong


def quiet(talk: Talk, asked: list[str], wrong: list[str]) -> None:
    assert wrong == []
    assert [url for url in asked if not url.startswith((talk.served.url, "data:", "blob:"))] == []


async def test_swagger_shows_every_operation_and_tries_one(talk: Talk, browser: BrowserContext, tmp_path: Path) -> None:
    page, asked, wrong = await opened(talk, browser, "/docs")
    await page.click("#operations-tag-sessions")
    await page.click("#operations-sessions-create_session .opblock-summary-control")
    block = page.locator("#operations-sessions-create_session")
    await block.locator("textarea").fill('{"title": "Made by trying it out", "model": "openai/scripted"}')
    document: Any = (await talk.served.client.get("/openapi.json")).json()
    assert await page.locator(".opblock-tag").count() == len(document["tags"])
    await block.locator("button.execute").click()
    await block.locator(".live-responses-table .response-col_status", has_text="201").wait_for()
    await page.screenshot(path=tmp_path / "docs.png")
    listed = (await talk.served.client.get("/api/v1/sessions")).json()["items"]
    assert [one["title"] for one in listed] == ["Made by trying it out"]
    quiet(talk, asked, wrong)


async def test_redoc_shows_every_operation(talk: Talk, browser: BrowserContext, tmp_path: Path) -> None:
    page, asked, wrong = await opened(talk, browser, "/redoc")
    await page.wait_for_selector('[id*="/operation/"]')
    document: Any = (await talk.served.client.get("/openapi.json")).json()
    shown = await page.locator('div[id*="/operation/"]').evaluate_all("all => all.map(one => one.id)")
    wanted = {each["operationId"] for path in document["paths"].values() for each in path.values()}
    assert wanted <= {id.rpartition("/")[2] for id in shown}
    await page.screenshot(path=tmp_path / "redoc.png")
    quiet(talk, asked, wrong)


async def test_without_a_login_the_pages_send_to_it_and_the_schema_is_not_told(talk: Talk) -> None:
    for path in ("/docs", "/redoc"):
        sent = await talk.served.bare.get(path)
        assert (sent.status_code, sent.headers["location"]) == (303, f"/login?next={path}")
    assert (await talk.served.bare.get("/openapi.json")).status_code == 401
    for name in ("nothing.js", "..%2fdocs.html", "LICENSE"):
        assert (await talk.served.bare.get(f"/assets/docs/{name}")).status_code == 404
    page = await talk.served.client.get("/docs")
    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert page.text.count("<script") == page.text.count("<script src=") == 2
