"""A server that has no model yet: what the app says, and how one gets from there to an answer."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.http.served import Served, serving
from tests.model_server import ModelServer, say

pytestmark = pytest.mark.alone


@pytest_asyncio.fixture(loop_scope="session")
async def served(sylph: Sylph) -> AsyncGenerator[Served, None]:
    """Nobody has told it of any service."""
    async with serving(sylph) as running:
        yield running


async def test_from_no_model_to_the_first_answer_without_a_command_line(person: Person) -> None:
    page = person.page
    await person.see("There is no model to think with yet.")
    await page.get_by_label("Message", exact=True).fill("Hello")
    await page.get_by_role("button", name="Begin").click()
    notices = page.get_by_role("region", name="Notices")
    await expect(notices).to_contain_text("There is no model to think with.")
    for command in ("sylph ", "/api/v1", "_API_KEY"):
        await expect(notices).not_to_contain_text(command)
    await notices.get_by_role("link", name="Settings → Services").click()
    service = page.get_by_label("Service", exact=True)
    await expect(service).to_be_visible()
    assert await service.get_by_role("option").count() > 20
    await service.select_option(label="Another one …")
    async with ModelServer() as model:
        model.follow([say("Here I am.")])
        await page.get_by_label("Name", exact=True).fill("mine")
        await page.get_by_label("Address", exact=True).fill(model.url)
        await page.get_by_label("Key", exact=True).fill("a-key-for-tests-0815")
        await page.get_by_role("button", name="Save", exact=True).click()
        await person.see("The key of mine is saved.")
        await page.get_by_role("button", name="New session").click()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("Hello")
        await page.get_by_role("button", name="Begin").click()
        await person.see("Here I am.")


async def test_an_address_that_is_none_is_refused(person: Person) -> None:
    page = person.page
    await page.goto("/settings/services")
    await page.get_by_label("Service", exact=True).select_option(label="Ollama")
    await page.get_by_label("Address", exact=True).fill("not a url")
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("must be an address like https://host/v1")
