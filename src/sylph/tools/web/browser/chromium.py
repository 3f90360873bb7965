"""The system's Chromium, driven by Playwright: one for each session, kept between calls, behind the checking proxy."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sylph.core.errors import ToolError
from sylph.net.address_guard import AddressGuard
from sylph.net.filtering_proxy import FilteringProxy
from sylph.net.url import Proxies
from sylph.tools.web.settings import ChromiumSettings

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Page, Playwright

BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
# Nothing leaves but through the proxy: no names looked up, no UDP, no talk of its own with its makers.
FLAGS = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pings",
    "--disk-cache-size=1000000",
)
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "FONTCONFIG_PATH")
LAUNCH_SECONDS = 30.0
GET_PLAYWRIGHT = "pip install 'sylph[browser]' (Playwright), and a Chromium: for example apt install chromium."


class BrowserWindow(Struct, dict=True):
    """The browser of one session: its pages, the one in front, and what happened that no page shows."""

    context: "BrowserContext"
    proxy: FilteringProxy
    page: "Page | None" = None
    events: list[str] = field(default_factory=list[str])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    timer: asyncio.TimerHandle | None = None
    gone: bool = False

    def watch_pages(self) -> None:
        self.context.on("page", self._focus_page)
        self.context.on("close", lambda _: self._mark_gone())
        for page in self.context.pages:
            self._focus_page(page)

    def take_events(self) -> list[str]:
        """What happened since this was last asked, refusals of the proxy included."""
        told = [*self.events, *(f"not reached: {said}" for said in self.proxy.refused)]
        self.events.clear()
        self.proxy.refused.clear()
        return list(dict.fromkeys(told))

    def _focus_page(self, page: "Page") -> None:
        self.page = page
        page.on("dialog", self._dismiss_dialog)
        page.on("download", self._refuse_download)
        page.on("close", lambda _: self._unfocus_page(page))

    def _unfocus_page(self, page: "Page") -> None:
        if self.page is page:
            others = [other for other in self.context.pages if other is not page]
            self.page = others[-1] if others else None

    async def _dismiss_dialog(self, dialog: "Dialog") -> None:
        self.events.append(f"the page opened a dialog, which was dismissed: {dialog.message[:200]}")
        with suppress(Exception):
            await dialog.dismiss()

    def _refuse_download(self, download: "Download") -> None:
        self.events.append(f"the page offered a download, which was refused: {download.suggested_filename[:200]}")

    def _mark_gone(self) -> None:
        self.gone = True


class BrowserPool:
    """All browsers of this process. None outlives it: their driver ends with its pipe, and they with their driver."""

    def __init__(self, settings: ChromiumSettings, reach: AddressGuard, proxies: Proxies | None = None) -> None:
        self._settings, self._reach, self._proxies = settings, reach, proxies
        self._driver: Playwright | None = None
        self._windows: dict[str, BrowserWindow] = {}
        self._closing: set[asyncio.Task[bool]] = set()

    @property
    def page_seconds(self) -> float:
        return self._settings.page_seconds

    def find(self, session: str) -> BrowserWindow | None:
        """The session's browser, if it has one."""
        found = self._windows.get(session)
        return found if found and not found.gone else None

    async def open(self, session: str, private: Path) -> BrowserWindow:
        """The session's browser, started if need be. Its profile lies in `private`, and goes when the session does."""
        found = self.find(session)
        if found is None:
            await self.close_window(session)
            found = self._windows[session] = await self._start_window(private / "browser")
        return found

    def start_idle_timer(self, session: str) -> None:
        """The session's browser is not used now: it is closed when that lasts."""
        window = self.find(session)
        if window is None:
            return
        if window.timer:
            window.timer.cancel()
        loop = asyncio.get_running_loop()
        window.timer = loop.call_later(self._settings.idle_seconds, self._close_idle, session)

    def _close_idle(self, session: str) -> None:
        task = asyncio.get_running_loop().create_task(self.close_window(session))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close_window(self, session: str) -> bool:
        """Closes the session's browser; whether there was one."""
        window = self._windows.pop(session, None)
        if window is None:
            return False
        if window.timer:
            window.timer.cancel()
        with suppress(Exception):  # However it ended, it is to be gone.
            await window.context.close()
        await window.proxy.close()
        return True

    async def close(self) -> None:
        for session in tuple(self._windows):
            await self.close_window(session)
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._driver:
            await self._driver.stop()
            self._driver = None

    async def _start_window(self, profile: Path) -> BrowserWindow:
        driver = await self._start_driver()
        proxy = FilteringProxy(self._reach.check, proxies=self._proxies, screen=self._reach.screen)
        url = await proxy.listen()
        try:
            context = await self._launch_browser(driver, profile, url)
        except BaseException:
            await proxy.close()
            raise
        window = BrowserWindow(context, proxy)
        window.watch_pages()
        return window

    async def _launch_browser(self, driver: "Playwright", profile: Path, proxy: str) -> "BrowserContext":
        from playwright.async_api import Error

        program = find_browser(self._settings.program, self._settings.environ)
        await asyncio.to_thread(_prepare_profile, profile)
        try:
            return await driver.chromium.launch_persistent_context(
                str(profile),
                executable_path=program or None,
                args=list(FLAGS),
                proxy={"server": proxy, "bypass": "<-loopback>"},
                env={**self._browser_environment(), "HOME": str(profile)},
                # Chromium's own sandbox cannot be had by root.
                chromium_sandbox=os.geteuid() != 0,
                accept_downloads=False,
                service_workers="block",
                timeout=LAUNCH_SECONDS * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                viewport={"width": 1280, "height": 800},
            )
        except Error as error:
            raise _start_error(program, error.message) from None

    async def _start_driver(self) -> "Playwright":
        if self._driver is None:
            try:
                from playwright.async_api import async_playwright
            except ImportError:
                raise ToolError(
                    "There is no browser to use: Playwright is not installed.",
                    kind="not_installed",
                    next=[f"Tell the user: {GET_PLAYWRIGHT}", "Use fetch for pages that need no scripts."],
                ) from None
            self._driver = await async_playwright().start()
        return self._driver

    def _browser_environment(self) -> dict[str, str | float | bool]:
        """What a browser needs of the environment; keys and tokens are not among it."""
        return {name: self._settings.environ[name] for name in KEPT_VARIABLES if name in self._settings.environ}


def find_browser(program: str, environ: Mapping[str, str], which: Callable[..., str | None] = shutil.which) -> str:
    """The browser: the one that is configured, else the first that is installed, else none."""
    path = environ.get("PATH")
    if not program:
        return next((found for name in BROWSER_NAMES if (found := which(name, path=path))), "")
    found = which(program, path=path)
    if found is None:
        raise ToolError(
            f"The browser {program!r} is not there.",
            kind="not_installed",
            next=["Tell the user: sylph config set web.browser /path/to/chromium (or unset it)."],
        )
    return found


def _prepare_profile(profile: Path) -> None:
    profile.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Left by a browser that was killed. Nobody else uses it now: a session has one writer.
    for name in ("SingletonLock", "SingletonCookie", "SingletonSocket"):
        (profile / name).unlink(missing_ok=True)


def _start_error(program: str, said: str) -> ToolError:
    if "Executable doesn't exist" in said:
        return ToolError(
            "There is no browser to use: no Chromium was found.",
            kind="not_installed",
            next=["Tell the user: install Chromium, for example apt install chromium, or set web.browser to its path."],
        )
    hints = ["Use fetch for pages that need no scripts."]
    if "sandbox" in said.lower():
        hints.insert(
            0, "Tell the user: Chromium's own sandbox cannot start here (unprivileged user namespaces are off)."
        )
    lines = [line for line in said.splitlines() if line.strip()]
    return ToolError(
        f"The browser {program} does not start: {' '.join(lines[:2])[:300]}", kind="browser_failed", next=hints
    )
