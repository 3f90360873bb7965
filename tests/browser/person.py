"""Somebody at the browser: what they do, and what they see."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, Request, expect
from tests.http.served import Served
from tests.patience import PATIENCE, eventually

MODEL = "openai/scripted"
# What never ends by itself, where there is no WebSocket.
STREAM = "/api/v1/stream?"
# When what moves has come to its end, and that is painted.
PAINTED = """
() => new Promise((done) => {
  const ends = (one) => Number.isFinite(one.effect.getComputedTiming().endTime);
  const paint = () => requestAnimationFrame(() => requestAnimationFrame(() => done()));
  Promise.allSettled(document.getAnimations().filter(ends).map((one) => one.finished)).then(paint);
})
"""
# When nothing in the page has changed for some frames.
QUIET = """
() => new Promise((done) => {
  let timer;
  const end = () => { watch.disconnect(); done(); };
  const again = () => { clearTimeout(timer); timer = setTimeout(end, 80); };
  const watch = new MutationObserver(again);
  watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  again();
})
"""


class Person:
    def __init__(self, page: Page, served: Served) -> None:
        self.page, self.served = page, served
        self.complaints: list[str] = []
        self.strayed: list[str] = []
        self._awaited: set[Request] = set()
        self._heard = asyncio.Event()
        page.on("websocket", lambda socket: socket.on("framereceived", lambda _: self._heard.set()))
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("request", self._asked)
        page.on("requestfinished", self._answered)
        page.on("requestfailed", self._answered)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.served.url, "data:", "blob:")):
            self.strayed.append(request.url)
        if request.is_navigation_request():
            # Nobody waits any more for what the page before it wanted.
            self._awaited.clear()
        if STREAM not in request.url:
            self._awaited.add(request)

    def _answered(self, request: Request) -> None:
        self._awaited.discard(request)

    async def log_in(self) -> None:
        """At once. That a link leads in is seen where the app begins, in test_shell."""
        made = await self.page.context.request.post("/api/v1/login", data={"key": self.served.token})
        assert made.ok, await made.text()
        await self.page.goto("/")
        async with asyncio.timeout(PATIENCE):
            await self._heard.wait()
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
        # By its letters: "Done" is not in "what can be done". Quotes would end the pattern.
        letters = re.sub("[\"'`>/]", lambda found: f"\\x{ord(found[0]):02x}", re.escape(text))
        await expect(self.page.get_by_text(re.compile(letters)).first).to_be_visible()

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Waits for what the page cannot show."""
        await eventually(holds)

    async def settle(self) -> None:
        """Until nothing is awaited, nothing changes and nothing moves."""
        async with asyncio.timeout(PATIENCE):
            await self.page.evaluate(QUIET)
            while self._awaited:
                await self.page.evaluate(QUIET)
            await self.page.evaluate(PAINTED)

    def content(self) -> None:
        """Nothing went wrong in the page, and it asked nobody but the server."""
        # A server that was killed for the sake of a test is missed by the browser, too.
        missed = ("ERR_CONNECTION", "ERR_INCOMPLETE", "Failed to load resource", "when fetching the script")
        wrong = [said for said in self.complaints if not any(each in said for each in missed)]
        assert not wrong, wrong
        assert not self.strayed, self.strayed
