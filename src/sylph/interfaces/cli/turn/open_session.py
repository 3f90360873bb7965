"""Which session a task runs in: a new one, a named one, or one that is adapted to the options."""

import re
from pathlib import Path

from msgspec.structs import replace

from sylph.app import App
from sylph.core.errors import UserError
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import NewSession
from sylph.interfaces.cli.kit.options import TaskOptions
from sylph.interfaces.cli.terminal.session_picker import find_session


async def open_session(app: App, options: TaskOptions) -> SessionState:
    """The session that the options name, changed as they say; else a new one. What is new in it is not seen yet."""
    if options.session:
        return await find_named_session(app, options)
    new = NewSession(
        workspace=(options.cwd or Path()).resolve(),
        model=await app.choose_model(options.model),
        mode=options.mode or app.config.settings.mode,
        sandbox=app.sandbox_enabled(wanted=options.sandboxed),
        label=_validate_label(options.label),
        budget=options.budget.money if options.budget else None,
    )
    # What a session is at its first fact is known without reading it.
    id = await app.runtime.create_session(new)
    await app.assign_roles(id, options.roles)
    return SessionState(id=id, workspace=str(new.workspace), model=new.model, mode=new.mode, sandbox=new.sandbox)


def _validate_label(label: str | None) -> str:
    """A label is a key of the configuration: a word."""
    if label is None:
        return ""
    if not re.fullmatch(r"[\w-]{1,60}", label):
        raise UserError(f"{label!r} is no label.", next=["give a word of letters, digits, `-` or `_`"])
    return label


async def find_named_session(app: App, options: TaskOptions) -> SessionState:
    summary = await find_session(app.runtime, options.session)
    if options.cwd and options.cwd.resolve() != Path(summary.workspace):
        raise UserError(
            f"Session {summary.id} works in {summary.workspace}, and stays there.",
            next=["leave out -C", "leave out -s to begin another session there"],
        )
    return await adapt_session(app, summary, options)


async def adapt_session(app: App, summary: SessionState, options: TaskOptions) -> SessionState:
    """The session as the options want it, seen from before they changed it: so the change is shown."""
    await app.assign_roles(summary.id, options.roles)
    if options.label is not None and _validate_label(options.label) != summary.label:
        raise UserError(f"Session {summary.id} was begun with the label {summary.label!r}.", next=["leave out --label"])
    changed = await app.adapt_session(
        summary, model=options.model, mode=options.mode, sandbox=options.sandboxed, budget=options.budget
    )
    return replace(changed, seq=summary.seq)
