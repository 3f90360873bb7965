"""Every page can be used by everybody: axe finds nothing, in light and dark, wide and narrow."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser import stage
from tests.browser.person import PAINTED, Person
from tests.flows.program import Sylph

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.skipif(not AXE.is_file(), reason="the packages of the app are not installed"),
]
TALL = 800
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
RUN = """
async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map(
  (one) => `${one.id}: ${one.nodes.slice(0, 4).map((node) => node.html.slice(0, 160) + " " +
    (node.any[0]?.message ?? node.all[0]?.message ?? "")).join(" | ")}`)
"""


@pytest.fixture
def shop(sylph: Sylph) -> Sylph:
    stage.furnish(sylph)
    return sylph


class Lens:
    """Looks at the page as it is now, in each way it can be looked at; tells at the end of all that was wrong."""

    def __init__(self, person: Person) -> None:
        self.person, self.page = person, person.page
        self.found: list[str] = []

    async def look(self, where: str) -> None:
        page = self.page
        await self.person.settle()
        if not await page.evaluate("'axe' in window"):
            await page.evaluate(AXE.read_text())
        for width in (1280, 390):
            await page.set_viewport_size({"width": width, "height": TALL})
            for scheme in SCHEMES:
                await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                await page.evaluate(PAINTED)
                self.found += [f"{where} {width} {scheme}: {each}" for each in await page.evaluate(RUN)]
        await page.set_viewport_size({"width": 1280, "height": TALL})


@pytest_asyncio.fixture(loop_scope="session")
async def lens(person: Person) -> AsyncGenerator[Lens, None]:
    made = Lens(person)
    yield made
    if made.found:
        pytest.fail("\n".join(made.found))


@pytest.mark.script(*stage.SCRIPT)
async def test_a_chat_in_every_state(shop: Sylph, person: Person, lens: Lens) -> None:
    page = person.page
    await lens.look("start")
    await stage.ask(person)
    await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
    await lens.look("approval")
    await page.get_by_role("button", name="Deny", exact=False).first.click()
    await lens.look("denying")
    await page.get_by_role("button", name="Back").click()
    await stage.approve_until(page, page.get_by_role("button", name="No, leave them exact"))
    await lens.look("question")
    await page.get_by_role("button", name="No, leave them exact").click()
    await person.see("all tests pass")
    await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    await lens.look("cards")
    await person.say("And the receipts?")
    await expect(page.get_by_text("longer than this model takes").first).to_be_visible()
    await lens.look("error")
    await page.get_by_label("Message", exact=True).fill("/")
    await lens.look("commands")
    await page.get_by_label("Message", exact=True).fill("")
    for name in ("Models by role", "Budget"):
        await page.get_by_role("button", name=name, exact=False).first.click()
        await lens.look(name)
        await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await lens.look("palette")


@pytest.mark.script(*stage.SCRIPT)
async def test_every_other_page(shop: Sylph, person: Person, lens: Lens) -> None:
    page = person.page
    await stage.others(person.served)
    id = await stage.ask(person)
    await stage.approve(page)
    await page.goto(f"/timeline/{id}")
    await lens.look("timeline")
    await page.goto("/dashboard")
    await lens.look("dashboard")
    await page.goto("/chat/nowhere")
    await lens.look("missing")


async def test_files(shop: Sylph, person: Person, lens: Lens) -> None:
    page = person.page
    await page.goto("/files")
    await person.see("Which folder?")
    await lens.look("folders")
    await page.get_by_role("link", name="the server's own").click()
    await person.see("prices.py")
    await lens.look("files")
    for name in ("prices.py", "README.md", "counter.png"):
        await page.get_by_text(name, exact=True).first.click()
        await lens.look(name)


async def test_settings(shop: Sylph, person: Person, lens: Lens) -> None:
    page = person.page
    await page.goto("/settings")
    await person.settle()
    places = await page.eval_on_selector_all(
        "a[href^='/settings/']", "all => [...new Set(all.map((one) => one.pathname))]"
    )
    assert len(places) > 5
    # The sections of the configuration first: the others lead away from their list.
    for place in sorted(places, key=lambda place: (not place.startswith("/settings/config/"), place)):
        await page.locator(f"a[href='{place}']").first.click()
        await expect(page.locator(f"a[href='{place}'][aria-current=page]")).to_be_visible()
        await lens.look(place)


async def test_before_one_is_logged_in(person: Person, lens: Lens) -> None:
    page = person.page
    await page.context.clear_cookies()
    for place in ("/", "/login"):
        await page.goto(place)
        await lens.look(place)
