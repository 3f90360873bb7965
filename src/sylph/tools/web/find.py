"""Searching the web with the service that the user chose."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from sylph.core.tool import Args, Context, Judged, Result, Tool
from sylph.net.http import Client
from sylph.tools.web.setup import Service

Freshness = Literal["any", "day", "week", "month", "year"]
LIMIT = 20


class WebSearch(Args, frozen=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)]
    limit: Annotated[int, Meta(ge=1, le=LIMIT, description="Results to show.")] = 8
    site: Annotated[str, Meta(max_length=200, description="Only pages of this host.")] = ""
    freshness: Annotated[Freshness, Meta(description="How old a page may be.")] = "any"


def web_search(service: Service, client: Client) -> Tool:
    host = urlsplit(service.place).hostname or ""

    async def run(args: WebSearch, context: Context) -> Result:
        # Late, as all that is only needed once something is searched for: every start of Sylph imports this module.
        from sylph.tools.web import asking

        wanted = asking.Wanted(query=args.query, limit=args.limit, site=args.site, freshness=args.freshness)
        return Result(text=await asking.answer(service, client, wanted, min(service.seconds, context.seconds)))

    def judge(args: WebSearch, context: Context) -> Judged:  # noqa: ARG001 - the contract's
        return Judged("external", "safe", f"asks {service.name} for {args.query[:80]!r}", hosts=(host,) if host else ())

    async def preview(args: WebSearch, context: Context) -> str:  # noqa: ARG001 - the contract's
        return f"would ask {service.name} ({host or 'not set up'}) for: {args.query}"

    return Tool(
        name="web_search",
        description="Search the web: titles, addresses and snippets. Read a page with fetch before you rely on it.",
        args=WebSearch,
        run=run,
        effect="external",
        recourse="pure",
        preview=preview,
        judge=judge,
        seconds=60.0,
    )
