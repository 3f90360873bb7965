"""What went wrong on the web, in words that a model can act on."""

from urllib.parse import urlsplit

from sylph.core.errors import ProviderError, ToolError
from sylph.net.address_guard import ForbiddenAddress
from sylph.net.page_fetch import FetchedPage
from sylph.tools.web import content_type
from sylph.tools.web.charset import decode_body
from sylph.tools.web.readability.main_content import extract_readable
from sylph.tools.web.untrusted_text import one_line

QUOTED = 300
ADVICE: dict[int, str] = {
    401: "It wants a login. Ask the user, or look for a public source.",
    403: "It does not let programs in. Try browse, or another source.",
    404: "Check the address, or look for the page with web_search.",
    410: "The page is gone for good. Look for another source with web_search.",
    429: "It asks for a pause. Do something else first.",
    451: "It may not be shown here, for legal reasons. Look for another source.",
}


class CrossSiteRedirect(ProviderError):
    """A redirect to another site than the one that was asked for, and judged."""


def refuse_cross_site(source: str, goal: str) -> None:
    """Stops at a redirect that leaves the host: what a rule or a person permitted was that host and no other."""
    if _site_of(source) == _site_of(goal):
        return
    raise CrossSiteRedirect(
        "bad_request", f"{source} sends us on to another host: {goal}", next=[f"If that is wanted, fetch {goal}"]
    )


def network_error(error: ProviderError) -> ToolError:
    """A failure below HTTP, for the model."""
    if isinstance(error, CrossSiteRedirect):
        return ToolError(str(error), kind="redirected", next=error.trouble.next)
    if isinstance(error, ForbiddenAddress):
        return ToolError(str(error), kind="private_address", next=error.trouble.next)
    next = {
        "timeout": ["Try again once, or find another source."],
        "network": ["Check the spelling of the host, or look for the page with web_search."],
    }.get(error.failure, ["Find another source."])
    return ToolError(str(error), kind=f"web_{error.failure}", next=next)


def status_error(page: FetchedPage) -> ToolError:
    """A page with a status that says no: what it says, and what can be done."""
    advice = ADVICE.get(
        page.status, "Its server has trouble; try later." if page.status >= 500 else "Check the address."
    )
    details: dict[str, object] = {"status": page.status}
    if pause := page.headers.get("retry-after", ""):
        details["retry after"] = one_line(pause, 60)
    if said := _quote_page(page):
        details["the page says"] = said
    return ToolError(
        f"{page.url} answered with status {page.status}.", kind="http_status", details=details, next=[advice]
    )


def _quote_page(page: FetchedPage) -> str:
    header = page.headers.get("content-type", "")
    kind = content_type.kind_of(content_type.detect_media_type(header, page.body))
    text = (
        decode_body(page.body[:100_000], content_type.declared_charset(header))
        if kind in ("html", "text", "json")
        else ""
    )
    if kind == "html":
        found = extract_readable(text, page.url, links=False)
        text = f"{found.title}: {found.text}" if found.title else found.text
    return one_line(text, QUOTED)


def _site_of(url: str) -> tuple[str, int]:
    """The host, with or without www., and its port; the usual ports of http and https are one."""
    parts = urlsplit(url)
    port = parts.port or 443
    return (parts.hostname or "").removeprefix("www."), 443 if port == 80 else port
