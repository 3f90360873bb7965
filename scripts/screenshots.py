"""Takes the pictures of the browser app, from the real server in a real browser, with a scripted model.

    scripts/screenshots              all of them
    scripts/screenshots chat files   some

Light and dark, 1280 wide; the chat also as on a telephone. Build the app first.
"""

import asyncio
import base64
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal, cast

from playwright.async_api import Page, async_playwright
from tests.browser import stage
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.http.served import serving
from tests.model_server import ModelServer

from sylph.tools.web.browser.chromium import BROWSER_NAMES

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDE, TALL, NARROW = 1280, 800, 390
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST = 120_000
MODEL = "openai/gpt-5"


class Studio:
    """The page of somebody who works in the shop, and a session to look at."""

    def __init__(self, person: Person) -> None:
        self.person, self.page = person, person.page
        self.session = ""

    async def prepare(self) -> None:
        await stage.others(self.person.served)
        self.session = await stage.ask(self.person)
        # Up to the change that is to be allowed.
        while not await self.page.get_by_text("prices.py").count() or not await _asking(self.page, "edit"):
            if await _asking(self.page, "shell"):
                await stage.approve(self.page)
            await self.page.wait_for_timeout(100)

    async def finish(self) -> None:
        page = self.page
        await page.goto(f"/chat/{self.session}")
        while not await page.get_by_text("Shall prices do that").count():
            if await page.get_by_role("button", name="Allow once").count():
                await stage.approve(page)
            await page.wait_for_timeout(100)
        await page.get_by_role("button", name="No, leave them exact").click()
        await self.person.see("all tests pass")


async def _asking(page: Page, tool: str) -> bool:
    asked = page.get_by_role("region", name="waits").or_(page.locator(".asks"))
    return bool(await asked.get_by_text(tool).count())


async def chat(studio: Studio) -> None:
    await studio.page.goto(f"/chat/{studio.session}")
    await studio.person.see("Allow once")


async def done(studio: Studio) -> None:
    await studio.page.goto(f"/chat/{studio.session}")
    await studio.person.see("all tests pass")


async def timeline(studio: Studio) -> None:
    await studio.page.goto(f"/timeline/{studio.session}")
    await studio.page.wait_for_timeout(800)
    await studio.page.locator("g[role=button].span").nth(3).dispatch_event("click")


async def dashboard(studio: Studio) -> None:
    await studio.page.goto("/dashboard")


async def files(studio: Studio) -> None:
    await studio.page.goto("/files")
    await studio.page.get_by_role("link", name="the server's own").click()
    await studio.page.get_by_text("prices.py", exact=True).first.click()


async def settings(studio: Studio) -> None:
    await studio.page.goto("/settings/tools")


async def palette(studio: Studio) -> None:
    await studio.page.goto("/dashboard")
    await studio.page.wait_for_timeout(500)
    await studio.page.keyboard.press("Control+k")


Shot = Callable[[Studio], Awaitable[None]]
# Those in the middle of the work, and those after it.
FIRST: dict[str, Shot] = {"chat": chat}
LATER: dict[str, Shot] = {
    "done": done,
    "timeline": timeline,
    "dashboard": dashboard,
    "files": files,
    "settings": settings,
    "palette": palette,
}


def main(wanted: list[str]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    # Its name is seen in the pictures.
    work = Path("/tmp/shop")
    work.mkdir()
    try:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "sylph").mkdir(mode=0o700)
            (home / "sylph" / "config.toml").write_text(f'probe = false\nmodel = "{MODEL}"\n')
            asyncio.run(_shoot(Sylph(home, work), wanted or [*FIRST, *LATER]))
    finally:
        shutil.rmtree(work)


async def _shoot(sylph: Sylph, wanted: list[str]) -> None:
    stage.furnish(sylph)
    program = next(found for found in map(shutil.which, BROWSER_NAMES) if found)
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ModelServer(list(stage.SCRIPT)))
        sylph.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="none")
        served = await stack.enter_async_context(serving(sylph))
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        context = await browser.new_context(base_url=served.url, viewport={"width": WIDE, "height": TALL})
        person = Person(await context.new_page(), served)
        await person.log_in()
        studio = Studio(person)
        await studio.prepare()
        await _take(studio, FIRST, wanted)
        await studio.finish()
        await _take(studio, LATER, wanted)
        await browser.close()


async def _take(studio: Studio, shots: dict[str, Shot], wanted: list[str]) -> None:
    page = studio.page
    for name, act in shots.items():
        if name not in wanted:
            continue
        await act(studio)
        await page.wait_for_timeout(900)
        for width, suffix in ((WIDE, ""), (NARROW, "-narrow")) if name == "chat" else ((WIDE, ""),):
            await page.set_viewport_size({"width": width, "height": TALL})
            for scheme in SCHEMES:
                await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                await page.wait_for_timeout(300)
                await _save(page, f"app-{name}{suffix}-{scheme}.webp")
        await page.set_viewport_size({"width": WIDE, "height": TALL})


async def _save(page: Page, name: str) -> None:
    line = await page.context.new_cdp_session(page)
    wish = {"format": "webp", "quality": 82}
    made = cast("dict[str, str]", await line.send("Page.captureScreenshot", wish))  # pyright: ignore[reportUnknownMemberType]
    data = base64.b64decode(made["data"])
    (PICTURES / name).write_bytes(data)
    sys.stdout.write(f"{name}: {len(data) / 1000:.0f} kB\n")
    if len(data) > MOST:
        raise SystemExit(f"{name} is too large.")


if __name__ == "__main__":
    main(sys.argv[1:])
