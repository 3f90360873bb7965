"""The browser app in a real browser: its first load, a fast model, a session of 100,000 facts."""

import asyncio
import json
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Page, async_playwright

from bench.load import Server, serving
from bench.measure import Row, server
from bench.store import fill
from sylph.engine.log.store import EventLog
from sylph.tools.web.browser.chromium import BROWSER_NAMES

LONG, NEVER = "longsession1", "longsession2"
RATE, SECONDS = 200, 10
WORDS = "The discount is *taken off* now, in `prices.py`, and **all** tests pass. "
BLOCK = f"{WORDS * 5}\n\n- {WORDS}\n- {WORDS}\n\n```python\ndef discounted(price, percent):\n    return price\n```\n\n"
# When there is something to use, and when there is a conversation to read.
WATCH = """
new MutationObserver(() => {
  if (!window.__ready && document.querySelector("nav button")) window.__ready = performance.now();
  if (!window.__shown && document.querySelector("[role=log] .row")) window.__shown = performance.now();
}).observe(document, { childList: true, subtree: true });
"""
LOADED = """
() => [performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource")]
  .filter((one) => !one.name.includes("/api/")).reduce((sum, one) => sum + one.encodedBodySize, 0)
"""
FRAMES = """
() => {
  window.__gaps = [];
  let last = performance.now();
  const step = (now) => {
    window.__gaps.push(now - last);
    last = now;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}
"""


def rows() -> list[Row]:
    program = next((found for found in map(shutil.which, BROWSER_NAMES) if found), None)
    if program is None:
        return [Row(name="the browser app: no Chromium is installed", figure=0, unit="")]
    text = (BLOCK * 100)[: RATE * SECONDS * 4]
    script = [{"text": text, "chunk": 4, "delay": 0.9 / RATE}]
    stores: list[Path] = []
    with server(script) as url, serving(url, before=stores.append) as served:
        return asyncio.run(_rows(program, served, stores[0]))


async def _rows(program: str, served: Server, data: Path) -> list[Row]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        # The policy of the page forbids what the measuring does.
        context = await browser.new_context(
            base_url=served.url, viewport={"width": 1280, "height": 800}, bypass_csp=True
        )
        await _log_in(context, served)
        try:
            return [*await _loading(context), *await _long(context, data), *await _fast(context, served)]
        finally:
            await browser.close()


async def _fill(data: Path, session: str) -> None:
    log = EventLog.open(data / "events.db")
    await fill(log, session)
    log.close()


async def _log_in(context: BrowserContext, served: Server) -> None:
    origin = f"http://{urlsplit(served.url).netloc}"
    done = await context.request.post("/api/v1/login", data={"key": served.token}, headers={"origin": origin})
    if not done.ok:
        raise RuntimeError(await done.text())


async def _opened(context: BrowserContext, path: str, mark: str) -> tuple[Page, float]:
    page = await context.new_page()
    await page.add_init_script(WATCH)
    await page.goto(path)
    await page.wait_for_function(f"window.{mark}", timeout=60_000)
    return page, await page.evaluate(f"window.{mark}") / 1000


async def _loading(context: BrowserContext) -> list[Row]:
    page, first = await _opened(context, "/", "__ready")
    await page.wait_for_load_state("load")
    size = await page.evaluate(LOADED) / 1000
    await page.close()
    return [
        Row(name="browser app, first load", figure=size, unit="KB gzip", bar=250),
        Row(name="… can be used after", figure=first, unit="s", bar=1.0, note="nothing kept, loopback"),
    ]


async def _long(context: BrowserContext, data: Path) -> list[Row]:
    """Filled behind the server's back: it has read nothing of them when they are opened for the first time."""
    first: list[float] = []
    again: list[float] = []
    nodes = 0
    for session in (LONG, NEVER):
        await _fill(data, session)
        for took in (first, again):
            page, seconds = await _opened(context, f"/chat/{session}", "__shown")
            took.append(seconds)
            nodes = await page.evaluate("document.querySelectorAll('*').length")
            await page.close()
    return [
        Row(
            name="100,000 facts in the page, first time",
            figure=max(first),
            unit="s",
            bar=1.0,
            note="the server reads them all for it; the slower of two",
        ),
        Row(name="… again", figure=max(again), unit="s", bar=1.0, note=f"{nodes} elements in the page"),
    ]


async def _fast(context: BrowserContext, served: Server) -> list[Row]:
    headers = {"authorization": f"Bearer {served.token}"}
    made = await (await context.request.post("/api/v1/sessions", data={"title": "fast"}, headers=headers)).json()
    page, _ = await _opened(context, f"/chat/{made['id']}", "__ready")
    box = page.get_by_label("Message", exact=True)
    await box.fill("Talk.")
    await page.evaluate(FRAMES)
    await box.press("Enter")
    await page.wait_for_function("document.querySelectorAll('[role=log] p').length > 3", timeout=60_000)
    await page.evaluate("window.__gaps.length = 0")
    began = asyncio.get_running_loop().time()
    path = f"/api/v1/sessions/{made['id']}"
    while json.loads(await (await context.request.get(path)).text())["state"] != "idle":  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    took = asyncio.get_running_loop().time() - began
    gaps: list[float] = sorted(await page.evaluate("window.__gaps"))
    slow = sum(gap > 50 for gap in gaps) / len(gaps) * 100
    note = f"{len(gaps) / took:.0f} frames/s, longest {gaps[-1]:.0f} ms, {RATE * SECONDS} tokens in about {took:.0f} s"
    return [Row(name="frames over 50 ms, fast model", figure=slow, unit="%", bar=1.0, note=note)]
