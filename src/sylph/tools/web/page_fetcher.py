"""Pages of the web, fetched under the bounds and remembered for a while."""

import time
from collections import OrderedDict

from sylph.core.errors import ProviderError
from sylph.core.tool import ToolContext, ToolResult
from sylph.net.http_client import HttpClient
from sylph.net.page_fetch import FetchedPage, FetchLimits, fetch_page
from sylph.tools.web import content_type, documents, fetch_errors
from sylph.tools.web.page_text import PageText, extract_text, select_part
from sylph.tools.web.settings import FetchOptions

ACCEPT = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,application/pdf;q=0.8,*/*;q=0.5"
KEPT = 8
FRESH_SECONDS = 300.0
Key = tuple[str, str, str, bool]


class PageFetcher:
    """Fetches, and remembers the latest texts, so that the next part is a part of the same."""

    def __init__(self, client: HttpClient, bounds: FetchLimits) -> None:
        self._client, self._bounds = client, bounds
        self._kept: OrderedDict[Key, tuple[float, PageText]] = OrderedDict()

    async def fetch_part(self, url: str, wish: FetchOptions, context: ToolContext) -> ToolResult:
        """What is there. A later part is one of the text that was read a moment ago."""
        key = (context.session, url, wish.format, wish.whole)
        text = self._cached_text(key) if wish.offset else None
        if text is None:
            page = await self._fetch_page(url, context)
            kind = content_type.kind_of(content_type.detect_media_type(page.headers.get("content-type", ""), page.body))
            if kind == "image" and wish.format != "json":
                return documents.image_result(page)
            if kind == "pdf" and wish.format != "json":
                text = await documents.read_pdf_page(page, context)
            else:
                text = await extract_text(page, wish.format, whole=wish.whole)
            self._cache_text(key, text)
        return ToolResult(text=select_part(text, wish.offset, wish.limit))

    async def _fetch_page(self, url: str, context: ToolContext) -> FetchedPage:
        bounds = FetchLimits(bytes=self._bounds.bytes, seconds=min(self._bounds.seconds, context.seconds))
        try:
            page = await fetch_page(
                self._client, url, headers={"Accept": ACCEPT}, bounds=bounds, onward=fetch_errors.refuse_cross_site
            )
        except ProviderError as error:
            raise fetch_errors.network_error(error) from error
        if page.status >= 400:
            raise fetch_errors.status_error(page)
        return page

    def _cached_text(self, key: Key) -> PageText | None:
        found = self._kept.get(key)
        return found[1] if found and time.monotonic() - found[0] < FRESH_SECONDS else None

    def _cache_text(self, key: Key, text: PageText) -> None:
        self._kept[key] = (time.monotonic(), text)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
