"""Turns that were interrupted: which there are, what they were about, and what can be done with them."""

from collections.abc import Iterable
from pathlib import Path

from sylph.core.text import count
from sylph.engine.runtime import Runtime
from sylph.engine.summary import Summary
from sylph.interfaces.render import Line, Span, flat


def is_interrupted(summary: Summary) -> bool:
    """Whether something in it waits and nobody is at work on it."""
    return bool(summary.open_turn or summary.queue) and not summary.pid


async def task_of(runtime: Runtime, summary: Summary) -> str:
    """What the open turn was asked to do; where none has begun, what waits to be done."""
    if not summary.open_turn:
        return next(iter(summary.queue.values()), summary.title)
    tasks = await runtime.tasks(summary.id)
    return next((task.text for task in tasks if task.turn == summary.open_turn), summary.title)


async def reminder(runtime: Runtime, folder: Path, but: str = "") -> list[Line]:
    """One line that names what was interrupted in this folder and how to finish it; none where nothing was."""
    found = [one for one in await runtime.interrupted() if one.id != but and one.workspace == str(folder)]
    if not found:
        return []
    task = flat(await task_of(runtime, found[0]), 40)
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [(Span("interrupted: ", "warn"), Span(f"{task} → sylph resume {found[0].id} (or --drop){more}"))]


async def listed(runtime: Runtime, found: Iterable[Summary]) -> list[str]:
    """A command for each, with what it would finish."""
    return [f"sylph resume {one.id}   {flat(await task_of(runtime, one), 60)}" for one in found]


def several(found: list[Summary]) -> str:
    return f"{count(len(found), 'turn')} were interrupted: which one?"
