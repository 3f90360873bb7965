"""A session of 100,000 facts is opened like any other."""

import re

import pytest
import pytest_asyncio
from bench.store import EVENTS, fill
from playwright.async_api import expect
from tests.browser.person import Person
from tests.flows.program import Sylph

from sylph.engine.log.store import EventLog

ID = "longsession1"


@pytest_asyncio.fixture(loop_scope="session")
async def filled(sylph: Sylph) -> None:
    data = sylph.home / "sylph" / "data"
    data.mkdir(parents=True, mode=0o700, exist_ok=True)
    log = EventLog.open(data / "events.db")
    await fill(log, ID)
    log.close()


@pytest.mark.alone
@pytest.mark.lengthy
@pytest.mark.usefixtures("filled")
async def test_its_end_is_shown_and_little_is_drawn(person: Person) -> None:
    page = person.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/facts" in request.url else None)
    await page.goto(f"/chat/{ID}")
    frame = page.get_by_role("log")
    await expect(frame.locator(".row").last).to_be_visible()
    await person.settle()
    assert await frame.evaluate("(one) => one.scrollHeight - one.scrollTop - one.clientHeight") < 40
    # The newest page of facts is asked for, and not what came long before.
    places = [int(re.findall(r"after=(\d+)", url)[0]) for url in asked]
    assert places
    assert min(places) > EVENTS - 3000
    for _ in range(6):
        await frame.evaluate("(one) => one.scrollBy(0, -1500)")
        await person.settle()
        assert await page.evaluate("document.querySelectorAll('*').length") < 3000
    assert await frame.evaluate("(one) => one.scrollTop") > 0
