"""Turns: steered, queued, stopped, held, run again, changed, copied, put back."""

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import ModelServer, call, say

LONG = say("This is a long answer that takes its time, word by word, until it is at its end.", held=True)


async def in_the_middle(person: Person, scripted: ModelServer) -> None:
    """Of a long answer."""
    await person.begin("Tell me")
    scripted.release()
    await person.see("This is a")


@pytest.mark.script(LONG, say("As you wish."))
async def test_what_is_said_meanwhile_steers(person: Person, scripted: ModelServer) -> None:
    page = person.page
    await in_the_middle(person, scripted)
    await person.say("Shorter, please")
    await expect(page.get_by_role("list", name="Waiting messages")).to_contain_text("Shorter, please")
    scripted.release()
    await person.see("said meanwhile")
    await person.see("As you wish.")
    await expect(page.get_by_role("list", name="Waiting messages")).to_have_count(0)


@pytest.mark.script(LONG, say("And now the other."))
async def test_what_waits_can_be_taken_back(person: Person, scripted: ModelServer) -> None:
    page = person.page
    await in_the_middle(person, scripted)
    box = page.get_by_label("Message", exact=True)
    await box.fill("first for later")
    await box.press("Alt+Enter")
    await box.fill("second for later")
    await page.get_by_role("button", name="Send when this is done").click()
    waiting = page.get_by_role("list", name="Waiting messages").get_by_role("listitem")
    await expect(waiting).to_have_count(2)
    await waiting.filter(has_text="first").get_by_role("button", name="Withdraw").click()
    await expect(waiting).to_have_count(1)
    scripted.release()
    await person.see("And now the other.")
    await expect(page.get_by_role("log").get_by_text("second for later")).to_be_visible()
    await expect(page.get_by_text("first for later")).to_have_count(0)


@pytest.mark.script(LONG, say("Now it works."))
async def test_stop_and_retry(person: Person, scripted: ModelServer) -> None:
    page = person.page
    await in_the_middle(person, scripted)
    await person.say("Shorter, please")
    await expect(page.get_by_role("list", name="Waiting messages")).to_contain_text("Shorter, please")
    await page.get_by_role("button", name="Stop").click()
    await person.see("You stopped it.")
    # Neither what was said so far is lost, nor what the work did not hear any more; also not for who comes later.
    for again in (False, True):
        if again:
            await page.reload()
        await expect(page.get_by_role("article", name="Sylph")).to_contain_text("This is a")
        await person.see("Unfinished")
        await person.see("Not delivered")
    await page.get_by_role("button", name="Put it into the message box").click()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("Shorter, please")
    await page.get_by_role("log").get_by_role("button", name="Retry").last.click()
    await person.see("Now it works.")
    await person.see("replaced")


@pytest.mark.script(say("One."), say("Two."), say("Three."))
async def test_turns_are_not_set_aside_without_a_word(person: Person) -> None:
    page = person.page
    await person.begin("First")
    await person.see("One.")
    await person.see("Done")
    await person.say("Second")
    await person.see("Two.")
    await expect(page.get_by_role("log").get_by_text("Done", exact=True)).to_have_count(2)
    first = page.get_by_role("article", name="You").first
    await first.hover()
    await first.get_by_role("button", name="Retry").click()
    await expect(page.get_by_role("dialog")).to_contain_text("The turn after it is set aside")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_text("replaced")).to_have_count(0)
    await first.hover()
    await first.get_by_role("button", name="Retry").click()
    await page.get_by_role("button", name="Run it again").click()
    await person.see("Three.")
    await expect(page.get_by_text("replaced")).to_have_count(2)


@pytest.mark.script(call("list", path=".", how={"held": True}), say("Then I go on."))
async def test_work_is_held_and_goes_on(person: Person, scripted: ModelServer) -> None:
    page = person.page
    await person.begin("Look")
    async with page.expect_response("**/pause"):
        await page.get_by_role("button", name="Pause").click()
    scripted.release()
    scripted.release()
    await person.see("The work is paused.")
    await page.get_by_role("button", name="Go on").click()
    await person.see("Then I go on.")


@pytest.mark.script(say("Wrong."), say("Right."))
async def test_a_message_is_changed_and_run_again(person: Person) -> None:
    page = person.page
    await person.begin("What is 2 + 3?")
    await person.see("Wrong.")
    await person.see("Done")
    await page.get_by_role("article", name="You").hover()
    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_role("log").get_by_label("Edit").fill("What is 2 + 2?")
    await page.get_by_role("button", name="Run with these words").click()
    await person.see("Right.")
    await expect(page.get_by_role("article", name="You")).to_have_count(2)
    await expect(page.get_by_role("article", name="You").last).to_contain_text("What is 2 + 2?")


@pytest.mark.script(say("One."), say("Two."), say("Three."))
async def test_a_copy_begins_at_any_message(person: Person) -> None:
    page = person.page
    id = await person.begin("First")
    await person.see("One.")
    await person.see("Done")
    await person.say("Second")
    await person.see("Two.")
    await expect(page.get_by_role("log").get_by_text("Done", exact=True)).to_have_count(2)
    second = page.get_by_role("article", name="You").last
    await second.hover()
    await second.get_by_role("button", name="Fork from here").click()
    await expect(page).not_to_have_url(f"**/{id}")
    await person.see("A copy of another session up to here")
    await expect(page.get_by_text("Two.")).to_have_count(0)
    # What it begins before stands ready to be said again.
    await expect(page.get_by_label("Message", exact=True)).to_have_value("Second")
    await person.say("Another second")
    await person.see("Three.")
    await page.get_by_role("link", name="the original").click()
    await person.see("Two.")
    first = page.get_by_role("article", name="Sylph").first
    await first.hover()
    await first.get_by_role("button", name="Fork from here").click()
    await person.see("A copy of another session up to here")
    await expect(page.get_by_text("One.", exact=True)).to_be_visible()
    # Its turn is whole, and the sidebar tells the copies from the original.
    await expect(page.get_by_role("log").get_by_text("Done", exact=True)).to_be_visible()
    await expect(page.get_by_text("in the middle of this turn")).to_have_count(0)
    await expect(page.get_by_text("copy", exact=True)).to_have_count(2)


@pytest.mark.script(call("write", path="a.txt", content="one\ntwo\n"), say("Written."))
async def test_changes_are_seen_and_put_back(person: Person) -> None:
    page, file = person.page, person.served.sylph.workspace / "a.txt"
    await person.begin("Write it")
    await page.get_by_role("button", name="Allow once").click()
    await person.see("Written.")
    await page.locator("summary", has_text="1 file changed").click()
    await expect(page.locator("footer tr.added")).to_have_count(2)
    await page.get_by_role("button", name="Undo changes").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("tr.removed")).to_have_count(2)
    assert file.exists()
    await dialog.get_by_role("button", name="Put back").click()
    await person.see("1 file was put back.")
    assert not file.exists()
    await expect(page.get_by_role("button", name="Undo changes")).to_have_count(0)
    await page.get_by_role("button", name="Take it back again").click()
    await dialog.get_by_role("button", name="Put back").click()
    await expect(page.get_by_role("button", name="Undo changes")).to_be_visible()
    assert file.read_text() == "one\ntwo\n"


@pytest.mark.script(call("write", path="a.txt", content="one\n"), say("Written."))
async def test_an_undo_leaves_what_somebody_else_changed(person: Person) -> None:
    page, file = person.page, person.served.sylph.workspace / "a.txt"
    await person.begin("Write it")
    await page.get_by_role("button", name="Allow once").click()
    await person.see("Written.")
    await expect(page.get_by_role("button", name="Undo changes")).to_be_visible()
    file.write_text("somebody else\n")
    await page.get_by_role("button", name="Undo changes").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("These would be left alone")
    await expect(dialog.get_by_role("button", name="Put back")).to_have_count(0)
    await dialog.get_by_label("Also what somebody else changed since").check()
    await dialog.get_by_role("button", name="Put back").click()
    await person.see("1 file was put back.")
    assert not file.exists()
