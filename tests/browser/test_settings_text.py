"""The texts among the settings: the config file itself, and who Sylph is."""

import pytest
from playwright.async_api import Page, expect
from tests.browser.person import Person

RAW = "/api/v1/config/raw"
SOUL = "/api/v1/identity/soul"
pytestmark = pytest.mark.alone


async def write(page: Page, label: str, text: str) -> None:
    """Types a text into the editor in the place of what is there."""
    box = page.get_by_role("textbox", name=label)
    await box.click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(text)


async def test_the_config_file_is_edited_refused_and_restored(person: Person) -> None:
    page, file = person.page, person.served.sylph.home / "sylph" / "config.toml"
    await page.goto("/settings/raw")
    await expect(page.get_by_role("textbox", name="Text editor")).to_contain_text("probe = false")
    before = file.read_text()
    wrong = f'{before}# mine\nmode = "nonsense"\n'
    await write(page, "Text editor", wrong)
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("mode: must be one of")
    await person.see("Line 3")
    await expect(page.get_by_role("textbox", name="Text editor")).to_contain_text("# mine")
    assert file.read_text() == before
    await write(page, "Text editor", f"{before}mode = [\n")
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("That is not valid TOML")
    await write(page, "Text editor", wrong.replace("nonsense", "plan"))
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("Saved. It counts now.")
    assert file.read_text() == wrong.replace("nonsense", "plan")
    await page.get_by_role("button", name="Restore").first.click()
    await person.see("Restored.")
    assert file.read_text() == before


async def test_of_two_who_edit_the_file_none_loses_anything(person: Person) -> None:
    page, file = person.page, person.served.sylph.home / "sylph" / "config.toml"
    await page.goto("/settings/raw")
    await write(page, "Text editor", 'probe = false\nmode = "plan"\n')
    theirs = 'probe = false\nlog_level = "error"\n'
    assert (await person.served.client.put(RAW, json={"text": theirs})).status_code == 200
    # It is told at once, and nothing can be saved before one has decided.
    await person.see("Somebody else changed it while you did.")
    await expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    await expect(page.locator("tr.removed", has_text="log_level")).to_be_visible()
    await expect(page.locator("tr.added", has_text="plan")).to_be_visible()
    assert file.read_text() == theirs
    await page.get_by_role("button", name="Save mine over theirs").click()
    await person.see("Saved. It counts now.")
    assert file.read_text() == 'probe = false\nmode = "plan"\n'
    await expect(page.get_by_role("button", name="Restore").first).to_be_visible()


async def test_the_soul_is_written_told_to_sessions_and_restored(person: Person) -> None:
    page = person.page
    await page.goto("/settings/identity/soul")
    await person.see("There is none yet.")
    await write(page, "Soul", "You are **calm** and brief.\n")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("main strong", has_text="calm")).to_be_visible()
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("A session is told of a change before its next turn.")
    session = (await person.served.session())["id"]
    await person.served.say(session, "Hello.")
    told = await person.served.until(session)
    assert any("calm** and brief" in str(each.data) for each in told)
    await page.get_by_role("button", name="Write").click()
    await write(page, "Soul", "You are loud.\n")
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("Saved.")
    await page.get_by_role("button", name="Show").first.click()
    await expect(page.locator("tr.added", has_text="calm")).to_be_visible()
    await page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    await person.see("Restored.")
    await expect(page.get_by_role("textbox", name="Soul")).to_contain_text("calm")
    assert (await person.served.client.get(SOUL)).json()["text"] == "You are **calm** and brief.\n"


async def test_a_soul_that_another_one_wrote_meanwhile_is_not_written_over(person: Person) -> None:
    page = person.page
    await page.goto("/settings/identity/soul")
    await write(page, "Soul", "Mine.\n")
    assert (await person.served.client.put(SOUL, json={"text": "Theirs.\n"})).status_code == 200
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("Somebody else changed it while you did.")
    await page.get_by_role("button", name="Take theirs, drop mine").click()
    await expect(page.get_by_role("textbox", name="Soul")).to_contain_text("Theirs.")
    await page.get_by_role("button", name="Remove this file").click()
    await page.get_by_role("group", name="Remove this file").get_by_role("button", name="Remove this file").click()
    await person.see("Removed. It can be restored")
    assert (await person.served.client.get(SOUL)).json()["there"] is False
