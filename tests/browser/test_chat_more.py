"""What is rarer in a chat: whole outputs, pictures of tools, turns that a crash left open, a cut connection."""

import base64

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.http.served import serving
from tests.model_server import ModelServer, call, say
from tests.patience import waiting

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)


@pytest.mark.script(call("shell", command="touch made; seq 1 30000"), say("That was much."))
async def test_a_long_output_is_there_whole(person: Person) -> None:
    page = person.page
    await person.begin("Count")
    await page.get_by_role("button", name="Allow once").click()
    await person.see("That was much.")
    card = page.locator("details.card")
    await card.locator("summary").first.click()
    await card.get_by_role("button", name="Show all of it").click()
    await expect(card.get_by_text("17123\n17124\n")).to_be_attached()
    await expect(card.get_by_role("link", name="Download")).to_be_visible()


@pytest.mark.script(call("read", path="dot.png"), say("A dot."))
async def test_pictures_of_tools_are_shown(person: Person) -> None:
    (person.served.sylph.workspace / "dot.png").write_bytes(PNG)
    await person.begin("Look at dot.png")
    await person.see("A dot.")
    card = person.page.locator("details.card")
    await card.locator("summary").click()
    image = card.get_by_role("img")
    assert await image.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 1


@pytest.mark.script(call("shell", command=f"touch made; echo begun; {waiting('go')}; echo over"), say("Done with it."))
async def test_output_is_seen_while_it_runs(person: Person) -> None:
    await person.begin("Run it")
    await person.page.get_by_role("button", name="Allow once").click()
    card = person.page.locator("details.card.running")
    await expect(card.get_by_text("begun", exact=True)).to_be_visible()
    (person.served.sylph.workspace / "go").touch()
    await person.see("Done with it.")


@pytest.mark.alone
@pytest.mark.script(say("This answer is cut off by a crash.", held=True), say("Now for real."))
async def test_a_turn_that_a_crash_left_open_is_given_up(person: Person, scripted: ModelServer) -> None:
    page, served = person.page, person.served
    id = await person.begin("Tell me")
    scripted.release()
    await person.see("This answer")
    port = served.url.rpartition(":")[2]
    served.kill()
    await served.process.wait()
    with (served.sylph.home / "sylph" / "config.toml").open("a") as config:
        config.write("[server]\nresume = false\n")
    async with serving(served.sylph, "--port", port) as again:
        person.served = again
        await person.see("A crash left a turn open.")
        await page.get_by_role("button", name="Give it up").click()
        await person.see("You gave it up.")
        await expect(page.get_by_text("A crash left a turn open.")).to_have_count(0)
        assert (await again.client.get(f"/api/v1/sessions/{id}")).json()["open_turn"] == ""
        await page.get_by_role("log").get_by_role("button", name="Retry").last.click()
        await person.see("Now for real.")
        await page.close()
