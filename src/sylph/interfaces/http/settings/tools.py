"""Tools over HTTP: what the agent can do, and what would be decided about it now."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from msgspec import Struct

from sylph.core.errors import NotFound
from sylph.core.permission.types import Decision, Effect, Mode, Risk
from sylph.core.text.suggestion import suggest_word
from sylph.core.tool import CallAssessment, Tool
from sylph.engine.calls.policy import PolicyInput, evaluate_policy
from sylph.interfaces.http.files.workspace_access import FOREIGN_FOLDER, resolve_workspace
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("tools")
InMode = Annotated[Mode | None, Query(description="What would be decided in this mode; else in the configured one.")]
Folder = Annotated[str, Query(max_length=4000, description="With the rules of the project in this folder.")]


class ToolView(Struct, frozen=True, kw_only=True):
    """A tool. Where effect and risk depend on the arguments (`judged`), it is told for a usual call."""

    name: str
    plugin: str
    description: str
    effect: Effect
    risk: Risk
    judged: bool
    recourse: str
    dry_run: bool
    decision: Decision
    reason: str
    badges: list[str]
    """What to show beside the name: the effect, a risk that is not `safe`, `by arguments`, `dry run`."""
    schema: dict[str, Any]


@routes.get("/tools", scope="read", also=FOREIGN_FOLDER, errors=(422,), gives=ListPage[ToolView])
async def list_tools(
    server: ServerState, principal: Principal, mode: InMode = None, workspace: Folder = ""
) -> ListPage[ToolView]:
    """Every tool with effect, risk and the decision that would apply now."""
    place = await resolve_workspace(server, principal, workspace) if workspace else server.workspace
    return ListPage(items=[_tool_view(server, plugin, tool, mode, place) for plugin, tool in _all_tools(server)])


@routes.get("/tools/{name}", scope="read", also=FOREIGN_FOLDER, gives=ToolView, errors=(404, 422))
async def get_tool(
    server: ServerState, principal: Principal, name: str, mode: InMode = None, workspace: Folder = ""
) -> ToolView:
    """All about one tool."""
    known = {tool.name: (plugin, tool) for plugin, tool in _all_tools(server)}
    if name not in known:
        raise NotFound(f"There is no tool {name!r}.{suggest_word(name, known)}", next=["GET /api/v1/tools"])
    place = await resolve_workspace(server, principal, workspace) if workspace else server.workspace
    return _tool_view(server, *known[name], mode, place)


def _all_tools(server: ServerState) -> list[tuple[str, Tool]]:
    return [(plugin.name, tool) for plugin in server.app.runtime.parts.plugins for tool in plugin.tools]


def _tool_view(server: ServerState, plugin: str, tool: Tool, mode: Mode | None, place: Path) -> ToolView:
    rules = server.app.runtime.parts.consent.rulebook.read(place)
    applied = mode or server.app.config.settings.mode
    ruling = evaluate_policy(
        PolicyInput(tool=tool.name, mode=applied, judged=CallAssessment(tool.effect, tool.risk), rules=rules)
    )
    preview = tool.preview is not None or tool.effect == "read"
    badges: list[str] = [tool.effect, *([tool.risk] if tool.risk != "safe" else [])]
    badges += ["by arguments"] if tool.judge else []
    badges += ["dry run"] if preview else []
    return ToolView(
        name=tool.name,
        plugin=plugin,
        description=tool.description,
        effect=tool.effect,
        risk=tool.risk,
        judged=tool.judge is not None,
        recourse=tool.recourse,
        dry_run=preview,
        decision=ruling.decision,
        reason=ruling.reason,
        badges=badges,
        schema=tool.spec.schema,
    )
