"""What a session is to be: checked whole before any of it is done."""

import re
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from sylph.app import App
from sylph.core.commands import Archive, Command, Pin, Rename, See, SetBudget, SetMode, SetModel, SetSandbox
from sylph.core.errors import UserError
from sylph.core.facts import Mode
from sylph.engine.policy import LOOSE
from sylph.engine.runtime import NewSession
from sylph.engine.summary import Summary
from sylph.interfaces.http.files.naming import FOREIGN, named
from sylph.interfaces.http.house import House
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.who import Who

MOST = 10**15
Title = Annotated[str, Meta(max_length=500)]
Model = Annotated[str, Meta(max_length=300, description="`provider/model`, or `@role`.")]
Budget = Annotated[int, Meta(ge=1, le=MOST, description="A cap of its own in micro-dollars.")]
Roles = Annotated[
    dict[Annotated[str, Meta(max_length=60)], Annotated[str, Meta(max_length=300)]],
    Meta(max_length=20, description="Models by role; an empty one leaves it to the configuration."),
]
Workspace = Annotated[
    str, Meta(max_length=4096, description="A folder of the server's machine; the server's own if empty.")
]
Label = Annotated[str, Meta(max_length=60, description="A word; sessions of one label share a budget.")]

LOOSER = "`approve` for a looser mode, no sandbox or a larger budget"
BEGINS = f"{LOOSER}; {FOREIGN}"


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


async def new_session(house: House, who: Who, body: SessionBody, id: str = "") -> str:
    """Makes a session as somebody wants it, as far as they may; returns its id."""
    # What was configured a moment ago counts already.
    house.live.look()
    app, settings = house.app, house.app.config.settings
    mode = body.mode or settings.mode
    if LOOSE.index(mode) < LOOSE.index(settings.mode):
        must_approve(who, f"the mode `{mode}`")
    sandbox = app.sandboxed(wanted=body.sandbox)
    if not sandbox and settings.sandbox.enabled:
        must_approve(who, "to do without the sandbox")
    if body.label and not re.fullmatch(r"[\w-]{1,60}", body.label):
        raise UserError(f"{body.label!r} is no label.", kind="bad_label", next=["give letters, digits, `-` or `_`"])
    new = NewSession(
        workspace=await named(house, who, body.workspace) if body.workspace else house.workspace,
        model=await app.choose(body.model),
        mode=mode,
        title=body.title,
        sandbox=sandbox,
        label=body.label,
        budget=body.budget,
        id=id,
        by=maker(who),
    )
    roles = await app.assigned(f"{role}={model}" for role, model in body.roles.items())
    made = await app.runtime.create(new)
    for each in roles:
        await app.runtime.send(made, each)
    return made


async def edits(app: App, who: Who, summary: Summary, body: SessionPatch) -> list[Command]:
    """The commands that make a session what is wanted. Raises before any of them is sent."""
    found: list[Command] = []
    if body.title is not UNSET and body.title != summary.title:
        found.append(Rename(title=body.title))
    if body.model is not UNSET and body.model != summary.model:
        found.append(SetModel(model=await app.choose(body.model)))
    if body.mode is not UNSET and body.mode != summary.mode:
        if LOOSE.index(body.mode) < LOOSE.index(summary.mode):
            must_approve(who, f"the mode `{body.mode}`")
        found.append(SetMode(mode=body.mode, actor=who.actor))
    if body.budget is not UNSET and body.budget != summary.budget:
        if summary.budget is not None and (body.budget is None or body.budget > summary.budget):
            must_approve(who, "a larger budget")
        found.append(SetBudget(money=body.budget, actor=who.actor))
    found += _switched(who, summary, body)
    if body.roles is not UNSET:
        wanted = [each for each in body.roles.items() if summary.roles.get(each[0], "") != each[1]]
        found += await app.assigned(f"{role}={model}" for role, model in wanted)
    found += _marked(summary, body)
    return found


def _switched(who: Who, summary: Summary, body: SessionPatch) -> list[Command]:
    mode = summary.mode if body.mode is UNSET else body.mode
    if body.sandbox is UNSET or body.sandbox == summary.sandbox:
        return []
    if not body.sandbox:
        must_approve(who, "to do without the sandbox")
        if mode == "sandbox":
            raise UserError("Mode `sandbox` cannot do without the sandbox.", next=["choose another mode"])
    return [SetSandbox(on=body.sandbox, actor=who.actor)]


def _marked(summary: Summary, body: SessionPatch) -> list[Command]:
    found: list[Command] = []
    if body.pinned is not UNSET and body.pinned != summary.pinned:
        found.append(Pin(on=body.pinned))
    if body.archived is not UNSET and body.archived != summary.archived:
        found.append(Archive(on=body.archived))
    if body.seen is not UNSET and body.seen > summary.seen:
        found.append(See(upto=body.seen))
    return found


def maker(who: Who) -> str:
    """How a session remembers who made it: those who could have added its folder need no name."""
    return "" if who.may("admin") else who.name


def must_approve(who: Who, what: str) -> None:
    """Raises where somebody wants to loosen what they may not."""
    if not who.may("approve"):
        raise Denied(
            f"{what[0].upper()}{what[1:]} is for a person to allow.",
            details={"scope": "approve"},
            next=["use a token with `approve`"],
        )
