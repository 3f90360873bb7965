"""The chat, used as a person uses it."""

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import call, fail, say

STEPS = [
    {"text": "Look", "status": "done"},
    {"text": "Write", "status": "doing"},
    {"text": "Test", "status": "pending"},
]
CODE = "Use this:\n\n```python\nprint('hello')\n```\n"


@pytest.mark.script(call("list", path="."), say("There is **nothing** in here."))
async def test_a_task_is_done_and_seen(person: Person) -> None:
    id = await person.begin("What is in here?")
    await expect(person.page.locator("strong", has_text="nothing")).to_be_visible()
    await expect(person.page.locator("details.card .name")).to_have_text("list")
    await person.see("Done")
    await expect(person.page.get_by_role("heading", level=1)).to_have_text("What is in here?")

    async def read() -> bool:
        return not (await person.served.client.get(f"/api/v1/sessions/{id}")).json()["unread"]

    # What was looked at is not unread any more.
    await person.until(read)


@pytest.mark.script(
    call("shell", command="echo one; sleep 0.3; echo two; touch made; exit 3"),
    say(CODE, reasoning="Hm, let me think.", chunk=3),
)
async def test_a_command_shows_what_it_printed_and_how_it_ended(person: Person) -> None:
    page = person.page
    await person.begin("Run it")
    await page.get_by_role("button", name="Allow once").click()
    card = page.locator("details.card", has_text="shell")
    await expect(card.get_by_text("exit code 3")).to_be_visible()
    await expect(card.get_by_text("one\ntwo")).to_be_visible()
    await expect(card).to_contain_text("You (with “tests”): allowed once")
    # Reasoning is folded, code has its colours, and the copy button works by keyboard.
    await expect(page.locator("summary", has_text="Reasoning")).to_be_visible()
    await expect(page.get_by_text("Hm, let me think.")).to_be_hidden()
    await expect(page.locator(".hljs-built_in")).to_have_text("print")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.locator(".code button").press("Enter")
    assert await page.evaluate("navigator.clipboard.readText()") == "print('hello')"


@pytest.mark.script(say("One."), say("Two."))
async def test_the_header_renames_and_switches(person: Person) -> None:
    page = person.page
    await person.begin("Hello")
    await person.see("One.")
    await page.get_by_role("button", name="Hello", exact=True).click()
    await page.get_by_label("Title", exact=True).fill("A better title")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("A better title")
    await expect(page.get_by_role("navigation").get_by_text("A better title")).to_be_visible()

    await page.get_by_label("Mode", exact=True).select_option("plan")
    await person.see("Mode changed. Plan")
    await page.get_by_label("Mode", exact=True).select_option("trust")
    await expect(page.get_by_role("dialog")).to_contain_text("without a question")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.get_by_label("Mode", exact=True)).to_have_value("plan")
    await page.get_by_label("Mode", exact=True).select_option("trust")
    await page.get_by_role("button", name="Trust it").click()
    await expect(page.get_by_label("Mode", exact=True)).to_have_value("trust")

    await page.get_by_role("button", name="Model: openai/scripted").click()
    await page.get_by_label("Search models").fill("script")
    await expect(page.get_by_role("dialog").get_by_role("button", name="openai/scripted")).to_have_attribute(
        "aria-pressed", "true"
    )
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Budget: none").click()
    await page.get_by_label("The most this session may cost").fill("a lot")
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await page.get_by_label("The most this session may cost").fill("0.50")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Budget: $0.50")).to_be_visible()
    await page.get_by_role("button", name="Sandbox on").click()
    await page.get_by_role("button", name="Switch it off").click()
    await expect(page.get_by_role("button", name="Sandbox off")).to_be_visible()


@pytest.mark.script(say("One."), say("Two."))
async def test_another_model_answers(person: Person) -> None:
    id = await person.begin("Hello")
    await person.see("One.")
    await person.say("/model openai/other")
    await person.see("From here on openai/other answers.")
    await expect(person.page.get_by_role("button", name="Model: openai/other")).to_be_visible()
    seen = (await person.served.client.get(f"/api/v1/sessions/{id}")).json()
    assert seen["model"] == "openai/other"


@pytest.mark.script(call("plan", steps=STEPS), say("Planned."))
async def test_the_plan_is_a_checklist(person: Person) -> None:
    page = person.page
    await person.begin("Plan it")
    await person.see("1 of 3 done")
    await expect(page.get_by_text("· Write")).to_be_visible()
    await page.locator("summary", has_text="1 of 3 done").click()
    await expect(page.get_by_role("listitem").filter(has_text="Test")).to_be_visible()


@pytest.mark.script(say("One."), say("Two."))
async def test_commands_are_completed_and_done(person: Person) -> None:
    page = person.page
    await person.begin("Hello")
    await person.see("One.")
    box = page.get_by_label("Message", exact=True)
    await box.fill("/ren")
    await expect(page.get_by_role("listbox", name="Commands").get_by_role("option")).to_have_count(1)
    await box.press("Tab")
    await expect(box).to_have_value("/rename ")
    await box.press_sequentially("By command")
    await box.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("By command")
    await person.say("/statsu")
    await person.see("Did you mean /status?")
    await expect(box).to_have_value("/statsu")
    await person.say("/status")
    await person.see("Model: openai/scripted")
    # What was said comes back with the arrow, what was begun after going elsewhere.
    await box.press("ArrowUp")
    await expect(box).to_have_value("Hello")
    await box.fill("a draft")
    await page.get_by_role("button", name="New session").click()
    await page.go_back()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("a draft")


@pytest.mark.script(fail(500, "The service is broken."), say("Back again."))
async def test_a_failure_is_told_in_words(person: Person) -> None:
    await person.begin("Hello")
    await person.see("did not answer")
    await person.see("Back again.")
    await expect(person.page.get_by_text("model.failed")).to_have_count(0)


@pytest.mark.script(say("In another place."))
async def test_a_session_begins_where_one_likes(person: Person) -> None:
    page, place = person.page, person.served.sylph.workspace / "deep"
    place.mkdir()
    await page.goto("/chat")
    await page.get_by_label("Workspace").fill("/no/such/folder")
    await page.get_by_label("Message", exact=True).fill("Hello")
    await page.get_by_role("button", name="Begin").click()
    await expect(page.get_by_role("alert")).to_contain_text("no folder")
    await page.get_by_label("Workspace").fill(str(place))
    await page.get_by_label("Mode", exact=True).select_option("plan")
    await page.get_by_role("button", name="Begin").click()
    await person.see("In another place.")
    await expect(page.get_by_label("Mode", exact=True)).to_have_value("plan")
    id = page.url.rpartition("/")[2]
    seen = (await person.served.client.get(f"/api/v1/sessions/{id}")).json()
    assert seen["workspace"] == str(place)


async def test_a_session_that_is_removed_meanwhile_is_told(person: Person) -> None:
    id = await person.begin("Hello")
    await person.see("Hello from the model.")
    await person.see("Done")
    assert (await person.served.client.delete(f"/api/v1/sessions/{id}")).status_code == 200
    await person.see("This session is in the trash.")
    await person.page.get_by_role("button", name="Bring it back").click()
    await expect(person.page.get_by_label("Message", exact=True)).to_be_visible()
    assert (await person.served.client.delete(f"/api/v1/sessions/{id}?purge=true")).status_code == 204
    await person.see("This session was removed for good.")
