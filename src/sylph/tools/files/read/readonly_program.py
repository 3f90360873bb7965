"""Programs that only look at a file: bounded, and harmless to start again."""

from collections.abc import Sequence
from pathlib import Path

from sylph.core.command_run import CommandResult, CommandSpec, LostCommand
from sylph.core.tool import ToolContext


async def run_readonly(
    argv: Sequence[str], path: Path, context: ToolContext, *, seconds: float, memory: int
) -> CommandResult | LostCommand:
    """How the program ended; one that was started before a crash is waited for instead."""
    order = CommandSpec(argv=argv, cwd=str(path.parent), seconds=min(seconds, context.seconds), memory=memory)
    before = await context.runner.attach(_ignore_output)
    return (
        await context.runner.run(order, _ignore_output) if before is None or isinstance(before, LostCommand) else before
    )


def _ignore_output(_: bytes) -> None:
    """What it prints is for the tool."""
