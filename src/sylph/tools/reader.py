"""Programs that only look at a file: bounded, and harmless to start again."""

from collections.abc import Sequence
from pathlib import Path

from sylph.core.run import Lost, Order, Ran
from sylph.core.tool import Context


async def look(argv: Sequence[str], path: Path, context: Context, *, seconds: float, memory: int) -> Ran | Lost:
    """How the program ended; one that was started before a crash is waited for instead."""
    order = Order(argv=argv, cwd=str(path.parent), seconds=min(seconds, context.seconds), memory=memory)
    before = await context.runs.attach(_quiet)
    return await context.runs.run(order, _quiet) if before is None or isinstance(before, Lost) else before


def _quiet(_: bytes) -> None:
    """What it prints is for the tool."""
