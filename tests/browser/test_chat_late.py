"""Whoever comes in the middle of an answer, or comes back to it, reads it from its first word on."""

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import ModelServer, call, say
from tests.patience import waiting

STORY = "It began on a grey morning. " + "And it went on and on. " * 6


@pytest.mark.script(say(STORY, held=True))
async def test_a_reload_in_the_middle_of_an_answer_loses_no_word(person: Person, scripted: ModelServer) -> None:
    await person.begin("Tell me a story.")
    scripted.release()
    log = person.page.get_by_role("log")
    await expect(log.get_by_text("And it went on")).to_be_visible()
    await person.page.reload()
    await expect(log.get_by_text("It began on a grey morning. And it went on")).to_be_visible()
    await expect(person.page.get_by_role("button", name="Stop")).to_be_visible()
    await person.page.get_by_role("button", name="Stop").click()


@pytest.mark.script(
    call("shell", command=f"for n in 1 2 3; do echo tick $n; done; {waiting('go')}; echo tick 4"), say("Done.")
)
async def test_who_comes_back_sees_all_that_a_command_printed(person: Person) -> None:
    made = await person.served.session(mode="trust")
    page = person.page
    await page.goto(f"/chat/{made['id']}")
    await person.say("Run it.")
    await expect(page.get_by_text("tick 2")).to_be_visible()
    await page.get_by_role("link", name="Dashboard").click()
    await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_text("tick 1")).to_be_visible()
    (person.served.sylph.workspace / "go").touch()
    await expect(page.get_by_text("Done.")).to_be_visible()
