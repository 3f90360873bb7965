"""Files that go with a message."""

import base64
import json

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import ModelServer, say

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
PASTE = """
([type, data]) => {
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "shot.gif", { type: "image/gif" }));
  const box = document.getElementById("message");
  const event = type === "paste"
    ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
  box.dispatchEvent(event);
}
"""


@pytest.mark.script(say("I see."), say("I see it again."))
async def test_pictures_are_picked_pasted_and_dropped(person: Person, scripted: ModelServer) -> None:
    page = person.page
    await person.begin()
    files = page.get_by_role("list", name="Attached files").get_by_role("listitem")
    await page.locator("input[type=file]").set_input_files(
        [
            {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"remember me"},
            {"name": "junk.bin", "mimeType": "application/octet-stream", "buffer": bytes([0, 255, 254])},
        ]
    )
    await expect(files).to_have_count(2)
    await person.see("junk.bin is neither a picture")
    data = base64.b64encode(GIF).decode()
    await page.evaluate(PASTE, ["paste", data])
    await expect(files).to_have_count(3)
    await page.evaluate(PASTE, ["drop", data])
    await expect(files).to_have_count(4)
    await page.get_by_role("button", name="Remove shot.gif").first.click()
    await expect(files).to_have_count(3)
    await person.say("Look at these")
    await person.see("I see.")
    await expect(files).to_have_count(0)
    shown = page.get_by_role("article", name="You").get_by_role("img")
    await expect(shown).to_have_count(2)
    assert await shown.first.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1
    sent = json.dumps(scripted.requests[-1].json["messages"])
    assert data in sent
    assert "remember me" in sent


@pytest.mark.script(say("I see."))
async def test_a_picture_goes_with_the_first_words(person: Person) -> None:
    page = person.page
    await page.goto("/chat")
    await page.locator("input[type=file]").set_input_files(
        [{"name": "dot.png", "mimeType": "image/png", "buffer": PNG}]
    )
    await page.get_by_label("Message", exact=True).fill("What is it?")
    await page.get_by_role("button", name="Begin").click()
    await person.see("I see.")
    await expect(page.get_by_role("article", name="You").get_by_role("img")).to_be_visible()
