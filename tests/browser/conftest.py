"""The browser app in a real browser, in front of a real server with a scripted model."""

import shutil
from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from tests.browser.person import Person
from tests.flows.conftest import model, sylph
from tests.flows.program import Model
from tests.http.conftest import served
from tests.http.served import Served
from tests.model_server import ModelServer, say

from sylph.interfaces.http.webapp import APP
from sylph.tools.web.chromium import NAMES

__all__ = ["model", "served", "sylph"]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
PROGRAM = next((found for found in map(shutil.which, NAMES) if found), None)


# Each test starts a server and a browser of its own: all of them take too long for every run of all tests.
ALWAYS = "test_a_task_is_done_and_seen"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    why = (
        "no Chromium is installed"
        if PROGRAM is None
        else ""
        if (APP / "index.html").is_file()
        else "the app is not built"
    )
    wanted = any("browser" in str(argument) for argument in config.args)
    for item in items:
        if "tests/browser" not in str(item.path):
            continue
        if why:
            item.add_marker(pytest.mark.skip(reason=why))
        elif not wanted and item.name != ALWAYS:
            item.add_marker(pytest.mark.skip(reason="`./check app` runs all tests in the browser"))


@pytest.fixture
async def scripted(request: pytest.FixtureRequest, model: Model) -> ModelServer:
    """What the model says: as a test's mark `script` has it."""
    mark = request.node.get_closest_marker("script")
    return await model(list(mark.args) if mark else [say("Hello from the model.")] * 8)


@pytest.fixture
async def browser() -> AsyncGenerator[Browser, None]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield started
        await started.close()


@pytest.fixture
async def context(browser: Browser, served: Served) -> AsyncGenerator[BrowserContext, None]:
    made = await browser.new_context(base_url=served.url, viewport={"width": 1280, "height": 800})
    yield made
    await made.close()


@pytest.fixture
async def person(context: BrowserContext, served: Served) -> AsyncGenerator[Person, None]:
    """Somebody who is logged in and looks at the app. What goes wrong in the page fails the test."""
    page: Page = await context.new_page()
    someone = Person(page, served)
    await someone.log_in()
    yield someone
    someone.content()
