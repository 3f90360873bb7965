"""Pages of the web, fetched under the bounds and remembered for a while."""

import time
from collections import OrderedDict

from sylph.core.errors import ProviderError
from sylph.core.tool import Context, Result
from sylph.net.http import Client
from sylph.net.visit import Bounds, Page, visit
from sylph.tools.web import content, papers, trouble
from sylph.tools.web.reading import Text, part, text_of
from sylph.tools.web.setup import Wish

ACCEPT = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,application/pdf;q=0.8,*/*;q=0.5"
KEPT = 8
FRESH_SECONDS = 300.0
Key = tuple[str, str, str, bool]


class Fetcher:
    """Fetches, and remembers the latest texts, so that the next part is a part of the same."""

    def __init__(self, client: Client, bounds: Bounds) -> None:
        self._client, self._bounds = client, bounds
        self._kept: OrderedDict[Key, tuple[float, Text]] = OrderedDict()

    async def answer(self, url: str, wish: Wish, context: Context) -> Result:
        """What is there. A later part is one of the text that was read a moment ago."""
        key = (context.session, url, wish.format, wish.whole)
        text = self._known(key) if wish.offset else None
        if text is None:
            page = await self._page(url, context)
            kind = content.kind_of(content.media(page.headers.get("content-type", ""), page.body))
            if kind == "image" and wish.format != "json":
                return papers.picture(page)
            if kind == "pdf" and wish.format != "json":
                text = await papers.document(page, context)
            else:
                text = await text_of(page, wish.format, whole=wish.whole)
            self._keep(key, text)
        return Result(text=part(text, wish.offset, wish.limit))

    async def _page(self, url: str, context: Context) -> Page:
        bounds = Bounds(bytes=self._bounds.bytes, seconds=min(self._bounds.seconds, context.seconds))
        try:
            page = await visit(self._client, url, headers={"Accept": ACCEPT}, bounds=bounds, onward=trouble.same_site)
        except ProviderError as error:
            raise trouble.told(error) from error
        if page.status >= 400:
            raise trouble.refused(page)
        return page

    def _known(self, key: Key) -> Text | None:
        found = self._kept.get(key)
        return found[1] if found and time.monotonic() - found[0] < FRESH_SECONDS else None

    def _keep(self, key: Key, text: Text) -> None:
        self._kept[key] = (time.monotonic(), text)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
