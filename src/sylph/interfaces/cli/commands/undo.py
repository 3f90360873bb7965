"""`sylph undo`: files as they were before a turn, shown first, asked about, and never over somebody else's work."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sylph.app import App
from sylph.core.commands import Undo
from sylph.core.errors import NotFound, UserError
from sylph.core.facts.file_change import FilesRestored, UndoStarted
from sylph.core.text.formatting import count_noun
from sylph.engine.folds.session_state import SessionState
from sylph.engine.undo.change_history import UndoRequest
from sylph.engine.undo.turn_diff import FileDiff
from sylph.engine.undo.undo import blocked_error
from sylph.interfaces.cli.commands.session.group import confirm_action
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.colours import paint_lines
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids, find_session, started_sessions
from sylph.interfaces.text.file_changes import file_change_lines, restored_lines, skipped_lines
from sylph.interfaces.text.render import StyledLine, styled_line


@click.command()
@click.argument("session", required=False, default="", shell_complete=complete_session_ids)
@click.option("--turn", default="", metavar="T", help="Back to before this turn: it and all after it are undone.")
@click.option("--call", default="", metavar="C", help="Back to before this call, likewise.")
@click.option("--files", multiple=True, metavar="GLOB", help="Only paths that match, or that are in this folder.")
@click.option("--redo", is_flag=True, help="Take the last undo back.")
@click.option("--force", is_flag=True, help="Also what somebody else changed since.")
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def command(cli: CliContext, session: str, *, dry_run: bool, yes: bool, as_json: bool, **told: Any) -> int:
    """Put files back as they were before the last turn of SESSION that changed any.

    Without SESSION it is the newest one that works in this folder, or else in a folder around it. Where there is no
    terminal to ask at, nothing is done without --yes.

    Content, modes, links and folders come back exactly; what the turn did not change is not touched, and neither is
    what somebody else changed since. Once more goes one turn further back. Commits and other things inside of .git
    are left to git.

    \b
      sylph undo --dry-run
      sylph undo k3x --turn t2 --files "src/*.py"
      sylph undo --redo
    """
    wish = UndoRequest(**told)
    return cli.run(lambda app: undo_turns(app, session, wish, dry_run=dry_run, ask=not yes, as_json=as_json))


async def undo_turns(app: App, name: str, wish: UndoRequest, *, dry_run: bool, ask: bool, as_json: bool) -> int:
    summary = await find_session(app.runtime, name) if name else _session_here(await started_sessions(app.runtime))
    if not summary.undoing:
        plan, files = await app.runtime.plan_undo(summary.id, wish)
        if dry_run and as_json:
            return _print_plan_json(summary, plan, files)
        if not as_json:
            _print_lines(app, undo_plan_lines(summary, plan, files))
        if dry_run:
            return exit_code.FAILED.number if plan.left else exit_code.OK.number
        if plan.left and not plan.steps:
            raise blocked_error(plan.left)
        if ask and plan.steps:
            _require_consent(summary)
    elif dry_run:
        raise UserError("An undo was cut off: `sylph undo` finishes it first.", kind="wrong_state")
    await app.runtime.send(
        summary.id, Undo(turn=wish.turn, call=wish.call, files=wish.files, force=wish.force, redo=wish.redo)
    )
    done = await app.runtime.last_undo(summary.id)
    assert done
    if as_json:
        print_json(_undo_facts(summary, done))
    else:
        _print_lines(
            app,
            [
                *([styled_line("An undo that was cut off is finished.")] if summary.undoing else []),
                *restored_lines(done),
            ],
        )
    return exit_code.FAILED.number if done.left else exit_code.OK.number


def _require_consent(summary: SessionState) -> None:
    """Raises UserError where nobody said yes."""
    if not sys.stdin.isatty():
        raise UserError(
            "Nothing was undone: there is no terminal to ask at.",
            kind="refused",
            next=["add --yes if you agree", f"sylph undo {summary.id} --dry-run"],
        )
    if not confirm_action("Put these back?"):
        raise UserError("Nothing was undone.", kind="refused", next=["--yes does not ask"])


def _session_here(known: Sequence[SessionState]) -> SessionState:
    """The newest session of this folder; else of the nearest folder around it that has one."""
    folder = Path().resolve()
    for place in (folder, *folder.parents):
        for summary in known:
            if Path(summary.workspace).resolve() == place:
                return summary
    if not known:
        raise NotFound("There is no session yet.", next=['sylph "a task"', "sylph chat"])
    raise NotFound(
        f"No session works in {folder}, or in a folder around it. The newest elsewhere is {known[0].id}, in "
        f"{known[0].workspace}.",
        next=[f"sylph undo {known[0].id}", "sylph session list"],
    )


def undo_plan_lines(summary: SessionState, plan: UndoStarted, files: tuple[FileDiff, ...]) -> list[StyledLine]:
    """What would be done, with the differences."""
    what = f"redo of {plan.redo}" if plan.redo else f"undo of {', '.join(plan.calls[:10])}"
    if len(plan.calls) > 10:
        what += f" and {count_noun(len(plan.calls) - 10, 'more call')}"
    head = styled_line(
        f"{summary.id} {plan.turn}: {what}, {count_noun(len(plan.steps), 'path')} in {summary.workspace}", "bold"
    )
    left = [styled_line("left as they are:", "warn"), *skipped_lines(plan.left)] if plan.left else []
    nothing = [] if plan.steps or plan.left else [styled_line("Everything is as it was already.")]
    return [head, *file_change_lines(files, diff=True), *left, *nothing]


def _print_lines(app: App, lines: list[StyledLine]) -> None:
    print_text(paint_lines(lines, colour=sys.stdout.isatty() and app.config.terminal.colour).rstrip("\n"))


def _print_plan_json(summary: SessionState, plan: UndoStarted, files: tuple[FileDiff, ...]) -> int:
    print_json(
        {
            "session": summary.id,
            "undo": "",
            "dry_run": True,
            "turn": plan.turn,
            "calls": plan.calls,
            "files": files,
            "left": [{"path": each.path, "why": each.why} for each in plan.left],
        }
    )
    return exit_code.FAILED.number if plan.left else exit_code.OK.number


def _undo_facts(summary: SessionState, done: FilesRestored) -> dict[str, Any]:
    left = [{"path": each.path, "why": each.why} for each in done.left]
    return {"session": summary.id, "undo": done.undo, "restored": done.restored, "left": left}
