"""The browser app in a real browser, in front of a real server with a scripted model.

All tests of a worker share one browser and, unless they are marked `alone`, one server; each has its own window, and
finds no session, no file and no login of the tests before it.
"""

import shutil
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, async_playwright, expect
from tests.browser.person import Person
from tests.browser.shared import STORE, Shared, furnished
from tests.conftest import ELSEWHERE
from tests.flows.conftest import unexplained
from tests.flows.program import Sylph
from tests.http.served import Served, serving
from tests.model_server import ModelServer, Script, say
from tests.patience import PATIENCE

from sylph.interfaces.http.pages.browser_app import APP_FOLDER
from sylph.tools.web.browser.chromium import BROWSER_NAMES

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
PROGRAM = next((found for found in map(shutil.which, BROWSER_NAMES) if found), None)
HERE = Path(__file__).parent
expect.set_options(timeout=PATIENCE * 1000)


# What takes a browser longest, more than half of the time of them all: `./check app` runs it, a run of everything does
# not, as that has to end within a quarter of an hour on two cores.
LONG = (
    "test_axe",
    "test_chat_late",
    "test_chat_long",
    "test_cuts",
    "test_hostile_names",
    "test_hundred_thousand",
    "test_phone",
    "test_settings_",
    "test_shell_link",
    "test_tabs",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    only = any("browser" in str(argument) for argument in config.args)
    missing = "no Chromium is installed" if PROGRAM is None else "the app is not built"
    ready = PROGRAM is not None and (APP_FOLDER / "index.html").is_file()
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        # The browser and the server outlive a test, and so must their event loop.
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if not ready:
            item.add_marker(pytest.mark.skip(reason=missing))
        elif not only and item.path.name.startswith(LONG):
            item.add_marker(pytest.mark.skip(reason=ELSEWHERE))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Shared, None]:
    made = Shared(lambda: tmp_path_factory.mktemp("shared"))
    await made.begin()
    yield made
    await made.end()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncGenerator[Browser, None]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield started
        await started.close()


@pytest.fixture
def alone(request: pytest.FixtureRequest) -> bool:
    """Whether the test kills its server, prepares its home or changes its configuration."""
    return request.node.get_closest_marker("alone") is not None


@pytest.fixture
def sylph(alone: bool, shared: Shared, tmp_path: Path) -> Generator[Sylph, None, None]:
    if not alone:
        yield shared.served.sylph
        return
    made = furnished(tmp_path)
    yield made
    assert not unexplained(made.home / "sylph" / STORE)


@pytest_asyncio.fixture(loop_scope="session")
async def scripted(
    request: pytest.FixtureRequest,
    alone: bool,
    shared: Shared,
    sylph: Sylph,
) -> AsyncGenerator[ModelServer, None]:
    """What the model says: as a test's mark `script` has it."""
    mark = request.node.get_closest_marker("script")
    script: Script = list(mark.args) if mark else [say("Hello from the model.")] * 8
    if mark and callable(mark.args[0]):
        script = mark.args[0]
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ModelServer()) if alone else shared.model
        sylph.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="a-key-for-tests")
        model.follow(script)
        yield model


@pytest_asyncio.fixture(loop_scope="session")
async def served(alone: bool, shared: Shared, sylph: Sylph, scripted: ModelServer) -> AsyncGenerator[Served, None]:
    if alone:
        async with serving(sylph) as running:
            yield running
        return
    yield shared.served
    scripted.follow(())
    wrong = await shared.clear()
    assert not wrong, wrong


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser, served: Served) -> AsyncGenerator[BrowserContext, None]:
    made = await browser.new_context(base_url=served.url, viewport={"width": 1280, "height": 800})
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def person(context: BrowserContext, served: Served) -> AsyncGenerator[Person, None]:
    """Somebody who is logged in and looks at the app. What goes wrong in the page fails the test."""
    someone = Person(await context.new_page(), served)
    await someone.log_in()
    yield someone
    someone.content()
