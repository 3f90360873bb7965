"""Turns that were interrupted: which there are, what they were about, and what can be done with them."""

from collections.abc import Iterable
from pathlib import Path

from sylph.core.text.formatting import count_noun
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.text.render import StyledLine, TextSpan, one_line


def is_interrupted(summary: SessionState) -> bool:
    """Whether something in it waits and nobody is at work on it."""
    return bool(summary.open_turn or summary.queue) and not summary.pid


async def interrupted_task(runtime: Runtime, summary: SessionState) -> str:
    """What the open turn was asked to do; where none has begun, what waits to be done."""
    if not summary.open_turn:
        return next(iter(summary.queue.values()), summary.title)
    tasks = await runtime.list_tasks(summary.id)
    return next((task.text for task in tasks if task.turn == summary.open_turn), summary.title)


async def resume_reminder(runtime: Runtime, folder: Path, but: str = "") -> list[StyledLine]:
    """One line that names what was interrupted in this folder and how to finish it; none where nothing was."""
    found = [one for one in await runtime.list_interrupted() if one.id != but and one.workspace == str(folder)]
    if not found:
        return []
    task = one_line(await interrupted_task(runtime, found[0]), 40)
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [(TextSpan("interrupted: ", "warn"), TextSpan(f"{task} → sylph resume {found[0].id} (or --drop){more}"))]


async def resume_commands(runtime: Runtime, found: Iterable[SessionState]) -> list[str]:
    """A command for each, with what it would finish."""
    return [f"sylph resume {one.id}   {one_line(await interrupted_task(runtime, one), 60)}" for one in found]


def choose_turn_message(found: list[SessionState]) -> str:
    return f"{count_noun(len(found), 'turn')} were interrupted: which one?"
