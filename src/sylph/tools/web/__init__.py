"""The tools that reach out to the web."""

from sylph.core.tool import Tool
from sylph.net.address import Proxies
from sylph.net.http import Client
from sylph.net.reach import Reach
from sylph.net.visit import Bounds
from sylph.tools.web.browse import Browser, browse
from sylph.tools.web.fetch import fetch
from sylph.tools.web.find import web_search
from sylph.tools.web.setup import Chromium, Service

__all__ = ["Chromium", "Service", "Web"]


class Web:
    """The web as the tools see it: pages under the check of addresses, searches by `client` as the user set them up."""

    def __init__(
        self,
        *,
        reach: Reach,
        client: Client,
        proxies: Proxies | None = None,
        bounds: Bounds,
        service: Service,
        chromium: Chromium,
    ) -> None:
        self._pages = Client(proxies=proxies, check=reach.check, screen=reach.screen)
        self._browser = Browser(chromium, reach, proxies)
        # All of them, whatever is installed: a list that depends on the machine would spoil the prompt's cache, and a
        # tool that says what it lacks is more use than one that nobody knows of.
        self.tools: tuple[Tool, ...] = (
            fetch(self._pages, bounds, reach),
            web_search(service, client),
            browse(self._browser),
        )

    async def close(self) -> None:
        await self._browser.close()
        await self._pages.close()
