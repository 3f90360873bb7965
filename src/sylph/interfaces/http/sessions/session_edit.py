"""What a session is to be: checked whole before any of it is done."""

import re
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from sylph.app import App
from sylph.core.commands import Archive, Command, MarkSeen, Pin, Rename, SetBudget, SetMode, SetModel, SetSandbox
from sylph.core.errors import UserError
from sylph.core.permission.types import Mode
from sylph.engine.calls.policy import MODES_BY_FREEDOM
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import NewSession
from sylph.interfaces.http.files.workspace_access import FOREIGN_FOLDER, resolve_workspace
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.state.server_state import ServerState

MAX_BUDGET = 10**15
Title = Annotated[str, Meta(max_length=500)]
Model = Annotated[str, Meta(max_length=300, description="`provider/model`, or `@role`.")]
Budget = Annotated[int, Meta(ge=1, le=MAX_BUDGET, description="A cap of its own in micro-dollars.")]
Roles = Annotated[
    dict[Annotated[str, Meta(max_length=60)], Annotated[str, Meta(max_length=300)]],
    Meta(max_length=20, description="Models by role; an empty one leaves it to the configuration."),
]
Workspace = Annotated[
    str, Meta(max_length=4096, description="A folder of the server's machine; the server's own if empty.")
]
Label = Annotated[str, Meta(max_length=60, description="A word; sessions of one label share a budget.")]

LOOSER_SCOPE = "`approve` for a looser mode, no sandbox or a larger budget"
NEW_SESSION_SCOPE = f"{LOOSER_SCOPE}; {FOREIGN_FOLDER}"


class SessionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a new session is to be; what is left out is as configured."""

    workspace: Workspace = ""
    model: Model = ""
    mode: Mode | None = None
    title: Title = ""
    label: Label = ""
    budget: Budget | None = None
    sandbox: bool | None = None
    roles: Roles = {}


class SessionPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to change; what is left out stays. A `budget` of null takes the cap away."""

    title: Title | UnsetType = UNSET
    model: Annotated[Model, Meta(min_length=1)] | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    sandbox: bool | UnsetType = UNSET
    budget: Budget | UnsetType | None = UNSET
    roles: Roles | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    seen: Annotated[int, Meta(ge=1, le=2**53, description="A person has seen it up to this fact.")] | UnsetType = UNSET


async def make_session(server: ServerState, principal: Principal, body: SessionBody, id: str = "") -> str:
    """Makes a session as somebody wants it, as far as they may; returns its id."""
    # What was configured a moment ago counts already.
    server.live_config.check_files()
    app, settings = server.app, server.app.config.settings
    mode = body.mode or settings.mode
    if MODES_BY_FREEDOM.index(mode) < MODES_BY_FREEDOM.index(settings.mode):
        require_approve_scope(principal, f"the mode `{mode}`")
    sandbox = app.sandbox_enabled(wanted=body.sandbox)
    if not sandbox and settings.sandbox.enabled:
        require_approve_scope(principal, "to do without the sandbox")
    if body.label and not re.fullmatch(r"[\w-]{1,60}", body.label):
        raise UserError(f"{body.label!r} is no label.", kind="bad_label", next=["give letters, digits, `-` or `_`"])
    new = NewSession(
        workspace=await resolve_workspace(server, principal, body.workspace) if body.workspace else server.workspace,
        model=await app.choose_model(body.model),
        mode=mode,
        title=body.title,
        sandbox=sandbox,
        label=body.label,
        budget=body.budget,
        id=id,
        by=creator_name(principal),
    )
    roles = await app.parse_roles(f"{role}={model}" for role, model in body.roles.items())
    made = await app.runtime.create_session(new)
    for each in roles:
        await app.runtime.send(made, each)
    return made


async def edit_commands(app: App, principal: Principal, summary: SessionState, body: SessionPatch) -> list[Command]:
    """The commands that make a session what is wanted. Raises before any of them is sent."""
    found: list[Command] = []
    if body.title is not UNSET and body.title != summary.title:
        found.append(Rename(title=body.title))
    if body.model is not UNSET and body.model != summary.model:
        found.append(SetModel(model=await app.choose_model(body.model)))
    if body.mode is not UNSET and body.mode != summary.mode:
        if MODES_BY_FREEDOM.index(body.mode) < MODES_BY_FREEDOM.index(summary.mode):
            require_approve_scope(principal, f"the mode `{body.mode}`")
        found.append(SetMode(mode=body.mode, actor=principal.actor))
    if body.budget is not UNSET and body.budget != summary.budget:
        if summary.budget is not None and (body.budget is None or body.budget > summary.budget):
            require_approve_scope(principal, "a larger budget")
        found.append(SetBudget(money=body.budget, actor=principal.actor))
    found += _sandbox_commands(principal, summary, body)
    if body.roles is not UNSET:
        wanted = [each for each in body.roles.items() if summary.roles.get(each[0], "") != each[1]]
        found += await app.parse_roles(f"{role}={model}" for role, model in wanted)
    found += _mark_commands(summary, body)
    return found


def _sandbox_commands(principal: Principal, summary: SessionState, body: SessionPatch) -> list[Command]:
    mode = summary.mode if body.mode is UNSET else body.mode
    if body.sandbox is UNSET or body.sandbox == summary.sandbox:
        return []
    if not body.sandbox:
        require_approve_scope(principal, "to do without the sandbox")
        if mode == "sandbox":
            raise UserError("Mode `sandbox` cannot do without the sandbox.", next=["choose another mode"])
    return [SetSandbox(on=body.sandbox, actor=principal.actor)]


def _mark_commands(summary: SessionState, body: SessionPatch) -> list[Command]:
    found: list[Command] = []
    if body.pinned is not UNSET and body.pinned != summary.pinned:
        found.append(Pin(on=body.pinned))
    if body.archived is not UNSET and body.archived != summary.archived:
        found.append(Archive(on=body.archived))
    if body.seen is not UNSET and body.seen > summary.seen:
        found.append(MarkSeen(upto=body.seen))
    return found


def creator_name(principal: Principal) -> str:
    """How a session remembers who made it: those who could have added its folder need no name."""
    return "" if principal.has_scope("admin") else principal.name


def require_approve_scope(principal: Principal, what: str) -> None:
    """Raises where somebody wants to loosen what they may not."""
    if not principal.has_scope("approve"):
        raise AccessDenied(
            f"{what[0].upper()}{what[1:]} is for a person to allow.",
            details={"scope": "approve"},
            next=["use a token with `approve`"],
        )
