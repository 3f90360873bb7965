"""Pages of the web, fetched under the bounds and remembered for a while."""

import time
from collections import OrderedDict

from sylph.core.errors import ProviderError
from sylph.core.tool import Context
from sylph.net.http import Client
from sylph.net.visit import Bounds, Page, visit
from sylph.tools.web import trouble
from sylph.tools.web.reading import Text, part, text_of
from sylph.tools.web.setup import Format

ACCEPT = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,application/pdf;q=0.8,*/*;q=0.5"
KEPT = 8
FRESH_SECONDS = 300.0
Key = tuple[str, str, str, bool]


class Fetcher:
    """Fetches, and remembers the latest texts, so that the next part is a part of the same."""

    def __init__(self, client: Client, bounds: Bounds) -> None:
        self._client, self._bounds = client, bounds
        self._kept: OrderedDict[Key, tuple[float, Text]] = OrderedDict()

    part = staticmethod(part)

    async def read(self, url: str, form: Format, context: Context, *, whole: bool, fresh: bool) -> Text:
        """The text of a page; unless a `fresh` one is wanted, the one that was read a moment ago."""
        key = (context.session, url, form, whole)
        known = None if fresh else self._known(key)
        if known is not None:
            return known
        text = await text_of(await self._page(url, context), form, whole=whole)
        self._keep(key, text)
        return text

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
