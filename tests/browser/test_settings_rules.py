"""Tools, rules and approvals, as a person sets them."""

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import call, say

WRITE = call("write", path="a.txt", content="a")


@pytest.mark.alone
async def test_a_rule_is_added_explained_moved_and_removed(person: Person) -> None:
    page = person.page
    await page.goto("/settings/rules")
    await person.see("There are no rules")
    await person.settle()
    await page.get_by_role("button", name="Add", exact=True).click()
    await person.see("every call there is")
    for decision, command, told in (("deny", "git push *", '"git push"'), ("allow", "git *", '"git"')):
        await page.get_by_label("Decision").select_option(decision)
        await page.get_by_label("Command", exact=True).fill(command)
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.get_by_role("listitem").filter(has_text=told)).to_be_visible()
    await page.get_by_label("Arguments, as JSON").fill("no json")
    await person.see("The arguments must be a JSON object.")
    await page.get_by_label("Arguments, as JSON").fill('{"command": "git push origin main"}')
    await page.get_by_role("button", name="Explain", exact=True).click()
    await person.see("It would be denied.")
    await expect(page.get_by_role("heading", name="The way to it")).to_be_visible()
    rules = (await person.served.client.get("/api/v1/policy")).json()["rules"]
    await page.get_by_role("button", name=f"Move up: {rules[1]['told']}").click()
    first = page.get_by_role("main").get_by_role("listitem").first
    await expect(first).to_contain_text('"git"')
    moved = (await person.served.client.get("/api/v1/policy")).json()["rules"]
    assert [each["rule"]["command"] for each in moved] == ["git *", "git push *"]
    await page.get_by_role("button", name=f"Remove: {rules[1]['told']}").click()
    await expect(first).to_contain_text('"git push"')
    await person.served.client.delete("/api/v1/policy/rules/1")
    await page.get_by_role("button", name=f"Remove: {rules[0]['told']}").click()
    await person.see("Somebody else changed the rules meanwhile.")
    await person.see("There are no rules: the mode decides.")


@pytest.mark.script(WRITE, say("Written."))
async def test_what_was_allowed_for_a_session_is_revoked(person: Person) -> None:
    page, served = person.page, person.served
    session = (await served.session())["id"]
    await served.say(session, "write it")
    asked = (await served.until(session, "asked"))[-1].data["data"]
    answers = {"answers": [{"question": asked["id"], "answer": "session"}]}
    assert (await served.client.post(f"/api/v1/sessions/{session}/answers", json=answers)).status_code < 300
    await served.until(session)
    await page.goto("/settings/rules")
    await page.get_by_role("button", name="Revoke: ").click()
    await person.see("Nothing is allowed beyond the rules.")
    assert (await served.client.get("/api/v1/policy/grants")).json()["items"] == []


async def test_tools_tell_what_they_do_and_what_would_be_decided(person: Person) -> None:
    page = person.page
    await page.goto("/settings/tools")
    await page.get_by_label("Search tools").fill("write")
    card = page.get_by_role("main").locator("li.card", has=page.get_by_text("write", exact=True)).first
    await expect(card.get_by_text("changes files", exact=True)).to_be_visible()
    await expect(card.get_by_text("asks", exact=True)).to_be_visible()
    await page.get_by_label("In the mode").select_option("plan")
    await expect(card.get_by_text("denied", exact=True)).to_be_visible()
    await card.get_by_text("Details").click()
    await expect(card.get_by_text('"properties"')).to_be_visible()
    await card.get_by_role("link", name="Explain a call").click()
    await expect(page.get_by_label("Tool", exact=True).last).to_have_value("write")
