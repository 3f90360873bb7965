"""`sylph "task"`: one turn from the command line, its answer on stdout."""

import re
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from sylph.app import App
from sylph.core.commands import Send
from sylph.core.errors import UserError
from sylph.engine.runtime import NewSession
from sylph.engine.summary import Summary
from sylph.interfaces.cli import keyed
from sylph.interfaces.cli.attach import attached
from sylph.interfaces.cli.door import Door
from sylph.interfaces.cli.intake import task_of
from sylph.interfaces.cli.options import Options, work
from sylph.interfaces.cli.picker import find
from sylph.interfaces.cli.runner import Runner
from sylph.interfaces.pending import reminder
from sylph.interfaces.render import flat, line


@click.command()
@click.argument("task", nargs=-1)
@work()
@click.pass_obj
def command(door: Door, task: tuple[str, ...], **told: Any) -> int:
    """Do TASK and print the answer.

    What comes on stdin is added to it. The answer goes to stdout, everything else to stderr.
    """
    text = task_of(task)
    if not text:
        raise UserError("There is no task.", next=['sylph "what is to be done"', "sylph chat"])
    options = Options(**told)
    return door.run(lambda app: perform(app, options, text))


async def perform(app: App, options: Options, text: str) -> int:
    """Sends the task and follows its turn to the end; the exit code tells how it went."""
    files = attached(options.attach)
    if options.key is not None:
        return await keyed.perform(app, options, text, lambda: session_for(app, options))
    runner = Runner(app, quiet=options.quiet, as_json=options.as_json)
    summary = await session_for(app, options)
    runner.note(*await reminder(app.runtime, Path(summary.workspace), but=summary.id))
    if files and app.blind(summary.model):
        runner.note(line(f"{flat(summary.model)} takes no pictures: it is only told what they are called", "warn"))
    return await runner.turn(summary, Send(text=text, dry_run=options.dry_run, files=files))


async def session_for(app: App, options: Options) -> Summary:
    """The session that the options name, changed as they say; else a new one. What is new in it is not seen yet."""
    if options.session:
        return await named(app, options)
    new = NewSession(
        workspace=(options.cwd or Path()).resolve(),
        model=await app.choose(options.model),
        mode=options.mode or app.config.settings.mode,
        sandbox=app.sandboxed(wanted=options.sandboxed),
        label=_labelled(options.label),
        budget=options.budget.money if options.budget else None,
    )
    # What a session is at its first fact is known without reading it.
    id = await app.runtime.create(new)
    await app.assign(id, options.roles)
    return Summary(id=id, workspace=str(new.workspace), model=new.model, mode=new.mode, sandbox=new.sandbox)


def _labelled(label: str | None) -> str:
    """A label is a key of the configuration: a word."""
    if label is None:
        return ""
    if not re.fullmatch(r"[\w-]{1,60}", label):
        raise UserError(f"{label!r} is no label.", next=["give a word of letters, digits, `-` or `_`"])
    return label


async def named(app: App, options: Options) -> Summary:
    summary = await find(app.runtime, options.session)
    if options.cwd and options.cwd.resolve() != Path(summary.workspace):
        raise UserError(
            f"Session {summary.id} works in {summary.workspace}, and stays there.",
            next=["leave out -C", "leave out -s to begin another session there"],
        )
    return await adapted(app, summary, options)


async def adapted(app: App, summary: Summary, options: Options) -> Summary:
    """The session as the options want it, seen from before they changed it: so the change is shown."""
    await app.assign(summary.id, options.roles)
    if options.label is not None and _labelled(options.label) != summary.label:
        raise UserError(f"Session {summary.id} was begun with the label {summary.label!r}.", next=["leave out --label"])
    changed = await app.adapt(
        summary, model=options.model, mode=options.mode, sandbox=options.sandboxed, budget=options.budget
    )
    return replace(changed, seq=summary.seq)
