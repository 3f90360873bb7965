"""A phone's width, also the narrowest: nothing is cut off, and nothing is said twice."""

import pytest
from playwright.async_api import Page, expect
from tests.browser import stage
from tests.browser.person import PAINTED, Person
from tests.flows.program import Sylph

# What reaches over the right edge without anything to scroll it by.
BEYOND = """() => {
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const box = node.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1) continue;
    let above = node.parentElement;
    while (above && getComputedStyle(above).overflowX === "visible") above = above.parentElement;
    // A bar may be scrolled aside by hand; a page may not.
    const scrolls = above && above.tagName !== "MAIN" && above !== document.body && above !== document.documentElement;
    if (!scrolls) found.push(`${node.tagName}.${node.className} ${Math.round(box.right)}`);
  }
  return found.slice(0, 5);
}"""
PLACES = (
    "/",
    "/dashboard",
    "/files",
    *(f"/settings/{name}" for name in ("config", "raw", "services", "models", "tools", "rules")),
    *(f"/settings/{name}" for name in ("identity", "access", "git", "about")),
)


@pytest.fixture
def shop(sylph: Sylph) -> Sylph:
    stage.furnish(sylph)
    return sylph


async def nothing_beyond(page: Page, where: str) -> None:
    for width in (320, 390):
        await page.set_viewport_size({"width": width, "height": 780})
        await page.evaluate(PAINTED)
        assert await page.evaluate(BEYOND) == [], f"{where} at {width}"


@pytest.mark.lengthy
@pytest.mark.script(*stage.SCRIPT)
async def test_every_page_fits_a_phone(shop: Sylph, person: Person) -> None:
    page = person.page
    id = await stage.ask(person)
    await page.set_viewport_size({"width": 390, "height": 780})
    await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
    await expect(page.get_by_text("Why does the test fail?", exact=True)).to_have_count(1)
    await nothing_beyond(page, "a chat")
    tops = [await page.get_by_role("button", name=name, exact=True).bounding_box() for name in ("Stop", "Send")]
    assert len({box["y"] for box in tops if box}) == 1, "the buttons stand in one line"
    for place in (f"/timeline/{id}", *PLACES):
        await page.goto(place)
        await expect(page.get_by_role("heading", level=1).first).to_be_attached()
        await person.settle()
        await nothing_beyond(page, place)
    await page.goto("/files")
    await page.get_by_role("link", name="the server's own").click()
    for name in ("README.md", "counter.png"):
        await page.get_by_role("table").get_by_text(name, exact=True).click()
        await expect(page.get_by_role("button", name="Close the file")).to_be_visible()
        await nothing_beyond(page, name)
        await page.go_back()
