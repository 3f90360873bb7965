"""The tools that reach out to the web."""

from sylph.core.tool import Tool
from sylph.net.address_guard import AddressGuard
from sylph.net.http_client import HttpClient
from sylph.net.page_fetch import FetchLimits
from sylph.net.url import Proxies
from sylph.tools.web.browser.tool import BrowserTool, build_browse_tool
from sylph.tools.web.fetch import build_fetch_tool
from sylph.tools.web.search.tool import build_web_search_tool
from sylph.tools.web.settings import ChromiumSettings, SearchService

__all__ = ["ChromiumSettings", "SearchService", "WebTools"]


class WebTools:
    """The web as the tools see it: pages under the check of addresses, searches by `client` as the user set them up."""

    def __init__(
        self,
        *,
        reach: AddressGuard,
        client: HttpClient,
        proxies: Proxies | None = None,
        bounds: FetchLimits,
        service: SearchService,
        chromium: ChromiumSettings,
    ) -> None:
        self._pages = HttpClient(proxies=proxies, check=reach.check, screen=reach.screen)
        self._browser = BrowserTool(chromium, reach, proxies)
        # All of them, whatever is installed: a list that depends on the machine would spoil the prompt's cache, and a
        # tool that says what it lacks is more use than one that nobody knows of.
        self.tools: tuple[Tool, ...] = (
            build_fetch_tool(self._pages, bounds, reach),
            build_web_search_tool(service, client),
            build_browse_tool(self._browser),
        )

    async def close(self) -> None:
        await self._browser.close()
        await self._pages.close()
