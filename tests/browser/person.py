"""Somebody at the browser: what they do, and what they see."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, Request, expect
from tests.http.served import Served

MODEL = "openai/scripted"


class Person:
    def __init__(self, page: Page, served: Served) -> None:
        self.page, self.served = page, served
        self.complaints: list[str] = []
        self.strayed: list[str] = []
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("request", self._asked)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.served.url, "data:", "blob:")):
            self.strayed.append(request.url)

    async def log_in(self) -> None:
        """By the one-time link, as after the first start."""
        made = await self.served.sylph.run("token", "link", "--json")
        await self.page.goto(json.loads(made.out)["url"])
        await expect(self.page.get_by_role("button", name="New session")).to_be_visible()

    async def begin(self, text: str = "") -> str:
        """A new session, with a first message if there is one; its id."""
        if text:
            await self.page.get_by_role("button", name="New session").click()
            await expect(self.page.get_by_role("button", name="Begin")).to_be_visible()
            await self.say(text)
        else:
            made = await self.served.session()
            await self.page.goto(f"/chat/{made['id']}")
        await self.page.wait_for_url("**/chat/*")
        await expect(self.page.get_by_role("log")).to_be_visible()
        return self.page.url.rpartition("/")[2]

    async def say(self, text: str) -> None:
        box = self.page.get_by_label("Message", exact=True)
        await box.fill(text)
        await box.press("Enter")

    async def see(self, text: str) -> None:
        await expect(self.page.get_by_text(text).first).to_be_visible(timeout=15_000)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Waits for what the page cannot show."""
        for _ in range(300):
            if await holds():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("It did not come to hold.")

    def content(self) -> None:
        """Nothing went wrong in the page, and it asked nobody but the server."""
        # A server that was killed for the sake of a test is missed by the browser, too.
        missed = ("ERR_CONNECTION", "ERR_INCOMPLETE", "Failed to load resource")
        wrong = [said for said in self.complaints if not any(each in said for each in missed)]
        assert not wrong, wrong
        assert not self.strayed, self.strayed
