"""Where the focus is, and what real key presses do there."""

import pytest
from playwright.async_api import Locator, Page, expect
from tests.browser.person import Person
from tests.model_server import begin, call, calls, say

WRITE = call("write", path="a.txt", content="one\n")
OTHER = {"path": "b.txt", "content": "two\n"}


def box(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


@pytest.mark.script(begin("A long answer. " * 40), say("Again."))
async def test_whoever_begins_opens_or_stops_can_write_on(person: Person) -> None:
    page = person.page
    await person.begin("Go")
    await page.keyboard.type("so nice")
    await expect(box(page)).to_have_value("so nice")
    await page.get_by_role("button", name="Stop").click()
    await expect(box(page)).to_be_focused()
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    await page.keyboard.type("r ones")
    await expect(box(page)).to_have_value("so nicer ones")
    await page.goto("/dashboard")
    await page.get_by_role("navigation", name="Sessions").get_by_role("link", name="Go").click()
    await expect(box(page)).to_be_focused()


@pytest.mark.script(WRITE, calls(("write", OTHER)), say("As you wish."))
async def test_questions_are_answered_by_keys(person: Person) -> None:
    page, workspace = person.page, person.served.sylph.workspace
    await person.begin("Write it")
    card = page.get_by_role("region", name="Sylph asks")
    key = card.locator("kbd").first
    # Whoever is writing is not answering.
    await expect(key).to_have_text("Alt+Y")
    await page.keyboard.type("wait")
    await page.keyboard.press("Alt+y")
    await expect(box(page)).to_have_value("wait")
    assert not (workspace / "a.txt").exists()
    await page.keyboard.press("Alt+q")
    await expect(card.get_by_role("button", name="Allow once")).to_be_focused()
    await page.keyboard.press("Alt+q")
    await expect(box(page)).to_be_focused()
    await box(page).fill("")
    await page.keyboard.press("Alt+y")
    await expect(card).to_contain_text("b.txt")
    assert (workspace / "a.txt").exists()
    await expect(box(page)).to_be_focused()
    await expect(key).to_be_visible()
    await page.keyboard.press("Alt+n")
    await expect(page.get_by_label("Why not?")).to_be_focused()
    await page.keyboard.type("no second one")
    await page.keyboard.press("Enter")
    await person.see("As you wish.")
    assert not (workspace / "b.txt").exists()
    await expect(box(page)).to_be_focused()
    await page.get_by_role("log").focus()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Alt+Y")


async def test_letters_typed_into_an_editor_are_letters(person: Person) -> None:
    """Its text is in a shadow root: the page is told of the keys, but not of what they are typed into."""
    page = person.page
    (person.served.sylph.workspace / "notes.md").write_text("")
    await page.goto("/files")
    await page.get_by_role("link", name="the server's own").click()
    await page.get_by_text("notes.md", exact=True).first.click()
    editor = page.get_by_role("textbox", name="Text of notes.md")
    await editor.click()
    await page.keyboard.type("sing? no gdn")
    await expect(editor).to_have_text("sing? no gdn")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("Control+s")
    await person.see("Saved.")


async def test_files_stay_with_the_message_while_one_looks_elsewhere(person: Person) -> None:
    page = person.page
    files = page.get_by_role("list", name="Attached files")
    id = await person.begin()
    for place in ("New session", id):
        if place == id:
            await page.get_by_role("navigation", name="Sessions").locator(f"a[href$='{id}']").click()
        else:
            await page.get_by_role("button", name=place).click()
        await page.locator("input[type=file]").set_input_files(
            [{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"remember me"}]
        )
        await expect(files).to_contain_text("notes.txt")
        await page.get_by_role("link", name="Dashboard").click()
        await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
        await page.go_back()
        await expect(files).to_contain_text("notes.txt")
