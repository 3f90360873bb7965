"""The timeline: a picture of what happened, its facts, and how it was at any moment."""

import re

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import call, say

TALK = (call("list", path="."), say("There is nothing here."), say("Still nothing."))


async def talked(person: Person) -> str:
    id = await person.begin("What is here?")
    await person.see("There is nothing here.")
    await person.say("And now?")
    await person.see("Still nothing.")
    await person.page.get_by_role("link", name="Timeline").click()
    await expect(person.page.get_by_role("button", name=re.compile("^Tools: list"))).to_be_visible()
    return id


@pytest.mark.script(*TALK)
async def test_a_click_shows_the_facts_and_the_conversation_as_it_was(person: Person) -> None:
    await talked(person)
    page = person.page
    await expect(page.get_by_role("button", name=re.compile("^Turns:"))).to_have_count(2)
    await page.get_by_role("button", name=re.compile("^Tools: list")).click()
    facts = page.get_by_role("region", name="Facts")
    await expect(facts.get_by_text("tool.called")).to_be_visible()
    await expect(facts.get_by_text("tool.finished")).to_be_visible()
    then = page.get_by_role("region", name="The conversation as it was")
    await expect(then.get_by_text("What is here?")).to_be_visible()
    await expect(then.get_by_text("There is nothing here.")).to_have_count(0)
    await page.get_by_role("button", name="Back to now").click()
    await expect(then.get_by_text("Still nothing.")).to_be_visible()


@pytest.mark.script(*TALK)
async def test_one_scrubs_back_and_forks_there(person: Person) -> None:
    id = await talked(person)
    page = person.page
    facts = (await person.served.client.get(f"/api/v1/sessions/{id}/facts?limit=200")).json()["items"]
    ended = next(at for at, fact in enumerate(facts) if fact["type"] == "turn.ended")
    await page.get_by_label("Moment").fill(str(ended))
    then = page.get_by_role("region", name="The conversation as it was")
    await expect(then.get_by_text("There is nothing here.")).to_be_visible()
    await expect(then.get_by_text("And now?")).to_have_count(0)
    await page.reload()
    await expect(then.get_by_text("There is nothing here.")).to_be_visible()
    await expect(then.get_by_text("And now?")).to_have_count(0)
    await page.get_by_role("button", name="Fork here").click()
    await page.wait_for_url(re.compile(r"/chat/(?!" + id + ")"))
    await person.see("There is nothing here.")
    await expect(page.get_by_text("And now?")).to_have_count(0)


@pytest.mark.script(*TALK)
async def test_the_picture_is_gone_through_by_keys(person: Person) -> None:
    await talked(person)
    page = person.page
    await page.get_by_role("button", name=re.compile("^Turns:")).first.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("g:focus")).to_have_attribute("aria-label", re.compile("^Model: openai/scripted"))
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("region", name="Facts").get_by_text("model.requested")).to_be_visible()
    wide = await page.locator(".picture > svg").evaluate("svg => svg.clientWidth")
    await page.keyboard.press("+")
    await page.wait_for_function("wide => document.querySelector('.picture > svg').clientWidth > wide", arg=wide)
    await page.keyboard.press("0")
    await page.wait_for_function("wide => document.querySelector('.picture > svg').clientWidth === wide", arg=wide)
