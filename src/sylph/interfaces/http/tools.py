"""Tools over HTTP: what the agent can do, and what would be decided about it now."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from msgspec import Struct

from sylph.core.errors import NotFound
from sylph.core.facts import Mode
from sylph.core.permission import Decision, Effect, Risk
from sylph.core.similar import guess
from sylph.core.tool import Judged, Tool
from sylph.engine.policy import Case, decide
from sylph.interfaces.http.files.naming import FOREIGN, named
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.http.who import Who

routes = Routes("tools")
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


@routes.get("/tools", scope="read", also=FOREIGN, errors=(422,), gives=Page[ToolView])
async def list_(house: House, who: Who, mode: InMode = None, workspace: Folder = "") -> Page[ToolView]:
    """Every tool with effect, risk and the decision that would apply now."""
    place = await named(house, who, workspace) if workspace else house.workspace
    return Page(items=[_view(house, plugin, tool, mode, place) for plugin, tool in _tools(house)])


@routes.get("/tools/{name}", scope="read", also=FOREIGN, gives=ToolView, errors=(404, 422))
async def get(house: House, who: Who, name: str, mode: InMode = None, workspace: Folder = "") -> ToolView:
    """All about one tool."""
    known = {tool.name: (plugin, tool) for plugin, tool in _tools(house)}
    if name not in known:
        raise NotFound(f"There is no tool {name!r}.{guess(name, known)}", next=["GET /api/v1/tools"])
    place = await named(house, who, workspace) if workspace else house.workspace
    return _view(house, *known[name], mode, place)


def _tools(house: House) -> list[tuple[str, Tool]]:
    return [(plugin.name, tool) for plugin in house.app.runtime.parts.plugins for tool in plugin.tools]


def _view(house: House, plugin: str, tool: Tool, mode: Mode | None, place: Path) -> ToolView:
    rules = house.app.runtime.parts.consent.rulebook.read(place)
    applied = mode or house.app.config.settings.mode
    ruling = decide(Case(tool=tool.name, mode=applied, judged=Judged(tool.effect, tool.risk), rules=rules))
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
