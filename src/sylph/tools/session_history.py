"""Looking through what was said and done in other sessions: those of this workspace, or all with a person's leave."""

from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Annotated, Literal

from msgspec import Meta

from sylph.core.errors import ToolError, UserError
from sylph.core.history_search import HistoryMatch, HistoryQuery, HistorySearch
from sylph.core.permission.path_policy import real_path
from sylph.core.tool import CallAssessment, Tool, ToolArgs, ToolContext, ToolResult

DAY = 86_400_000
Speaker = Literal["any", "user", "assistant", "call", "result"]


class HistoryArgs(ToolArgs, frozen=True, kw_only=True):
    words: Annotated[str, Meta(description='All of these; "a phrase" in quotes.')] = ""
    session: Annotated[str, Meta(description="Only this one.")] = ""
    days: Annotated[float, Meta(ge=0, description="Only the last so many.")] = 0
    role: Annotated[Speaker, Meta(description="Only what came from there.")] = "any"
    fact: Annotated[int, Meta(ge=0, description="Show this fact of the session whole instead.")] = 0
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    everywhere: Annotated[bool, Meta(description="Other workspaces too; the user is asked.")] = False


def build_history_tool(archive: HistorySearch, store: Path) -> Tool:
    """The tool; `store` is the file that all sessions lie in."""

    def judge(args: HistoryArgs, context: ToolContext) -> CallAssessment:  # noqa: ARG001 - the contract's
        if not args.everywhere:
            return CallAssessment("read", "safe", "looks through the earlier sessions of this workspace")
        # What is said here goes to this session's model: the same as reading Sylph's own data in any other way.
        return CallAssessment(
            "read", "caution", "looks through the sessions of all workspaces", reads=(str(real_path(store)),)
        )

    async def run(args: HistoryArgs, context: ToolContext) -> ToolResult:
        place = "" if args.everywhere else str(context.workspace)
        if args.fact:
            return await _show_fact(archive, args, place)
        wanted = HistoryQuery(
            words=args.words,
            session=args.session,
            since=max(round(time() * 1000 - args.days * DAY), 0) if args.days else 0,
            role=None if args.role == "any" else args.role,
            limit=args.limit,
            # What is asked for here would be found here first of all.
            without="" if args.session else context.session,
            workspace=place,
        )
        try:
            findings = await archive.search(wanted)
        except UserError as error:
            raise ToolError(str(error), kind=error.trouble.kind, next=error.trouble.next) from error
        lines = [render_match(found) for found in findings.found] or ["[nothing found]"]
        more = (
            [f"[the newest {len(lines)}; there may be more: narrow the search or raise limit]"] if findings.more else []
        )
        return ToolResult(text="\n".join([*lines, *more]))

    return Tool(
        name="history",
        description="Search earlier sessions of this workspace: what was said, answered, called and returned.",
        args=HistoryArgs,
        run=run,
        effect="read",
        recourse="pure",
        judge=judge,
    )


async def _show_fact(archive: HistorySearch, args: HistoryArgs, place: str) -> ToolResult:
    found = await archive.fact(args.session, args.fact, place) if args.session else None
    if found is None:
        raise ToolError(
            f"There is no fact {args.fact} of a session {args.session!r}{' in this workspace' if place else ''}.",
            kind="not_found",
            next=[
                "Take session and fact from a search.",
                *(["everywhere looks in other workspaces."] if place else []),
            ],
        )
    return ToolResult(text=f"[{_match_heading(found)}]\n{found.text}")


def render_match(found: HistoryMatch) -> str:
    return f"{_match_heading(found)}: {found.text}"


def _match_heading(found: HistoryMatch) -> str:
    when = datetime.fromtimestamp(found.ts / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    return f"session {found.session} fact {found.seq}, {when}, {found.role}"
