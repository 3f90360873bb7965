"""Searching the web with the service that the user chose."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult
from sylph.net.http_client import HttpClient
from sylph.tools.web.settings import SearchService

Freshness = Literal["any", "day", "week", "month", "year"]
LIMIT = 20


class WebSearchArgs(ToolArgs, frozen=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)]
    limit: Annotated[int, Meta(ge=1, le=LIMIT, description="Results to show.")] = 8
    site: Annotated[str, Meta(max_length=200, description="Only pages of this host.")] = ""
    freshness: Annotated[Freshness, Meta(description="How old a page may be.")] = "any"


def build_web_search_tool(service: SearchService, client: HttpClient) -> Tool:
    host = urlsplit(service.service_url).hostname or ""

    async def run(args: WebSearchArgs, context: ToolContext) -> ToolResult:
        # Late, as all that is only needed once something is searched for: every start of Sylph imports this module.
        from sylph.tools.web.search import query_service

        wanted = query_service.WebQuery(query=args.query, limit=args.limit, site=args.site, freshness=args.freshness)
        return ToolResult(
            text=await query_service.search_web(service, client, wanted, min(service.seconds, context.seconds))
        )

    def judge(args: WebSearchArgs, context: ToolContext) -> CallAssessment:  # noqa: ARG001 - the contract's
        return CallAssessment(
            "external", "safe", f"asks {service.name} for {args.query[:80]!r}", hosts=(host,) if host else ()
        )

    async def preview(args: WebSearchArgs, context: ToolContext) -> str:  # noqa: ARG001 - the contract's
        return f"would ask {service.name} ({host or 'not set up'}) for: {args.query}"

    return Tool(
        name="web_search",
        description="Search the web: titles, addresses and snippets. Read a page with fetch before you rely on it.",
        args=WebSearchArgs,
        run=run,
        effect="external",
        recourse="pure",
        preview=preview,
        judge=judge,
        seconds=60.0,
    )
