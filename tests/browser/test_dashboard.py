"""The dashboard: what runs, what needs you, what it costs."""

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import call, say

WRITE = call("write", path="note.txt", content="hello")


@pytest.mark.script(WRITE, say("It is written."))
async def test_a_waiting_question_is_answered_from_the_dashboard(person: Person) -> None:
    await person.begin("write a note")
    await expect(person.page.get_by_role("button", name="Allow once")).to_be_visible()
    await person.page.get_by_role("link", name="Dashboard").click()
    needs = person.page.get_by_role("region", name="Needs you")
    await expect(needs.get_by_role("link", name="write a note")).to_be_visible()
    await needs.get_by_role("button", name="Allow once").click()
    await expect(needs.get_by_text("Nothing waits for you.")).to_be_visible()
    await expect(needs.get_by_text("Done since you looked")).to_be_visible()
    await needs.get_by_role("link", name="write a note").click()
    await person.see("It is written.")


@pytest.mark.script(say("One."), say("Two."))
async def test_what_was_spent_is_a_chart_and_a_table(person: Person) -> None:
    await person.begin("hello")
    await person.see("One.")
    await person.page.goto("/dashboard")
    cost = person.page.get_by_role("region", name="Cost per day")
    await expect(cost.get_by_role("img")).to_be_visible()
    await expect(cost.locator("canvas")).to_be_visible()
    await cost.get_by_text("As a table").click()
    await expect(cost.get_by_role("columnheader", name="openai/scripted")).to_be_visible()
    health = person.page.get_by_role("region", name="Health")
    await expect(health.get_by_text("All is well")).to_be_visible()
    recent = person.page.get_by_role("region", name="Recent sessions")
    await expect(recent.get_by_role("link", name="hello")).to_be_visible()
    made = await person.served.session(title="Made elsewhere")
    await expect(recent.get_by_role("link", name=made["title"])).to_be_visible()
