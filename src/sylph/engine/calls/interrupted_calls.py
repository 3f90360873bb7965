"""What a turn leaves behind that was stopped or given up: calls without a result, commands that run, their journals."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Container

from sylph.core.errors import ErrorReport, SylphError
from sylph.core.facts.tool_call import ToolFinished
from sylph.core.tool import ToolResult
from sylph.engine.commands.journal_reader import read_journal
from sylph.engine.commands.processes import kill_marked
from sylph.engine.commands.runner_client import ATTEMPT_SEPARATOR, POLL_SECONDS, STOP_SECONDS, RunnerClient

# What the result of a call begins with that a stopped turn left behind.
STOPPED_PREFIX = "[the turn was stopped]"
DROPPED = "dropped"
# How long a file that is being written is waited for when its turn is stopped.
WRITE_GRACE_SECONDS = 5.0
NO_EFFECT = ToolResult(
    text=f"{STOPPED_PREFIX} It had not taken effect.",
    ok=False,
    trouble=ErrorReport("no_effect", "It had not taken effect."),
)


class CallLeftOpen(SylphError):
    """Nothing is said of a call now: it was cut off in a log from a time when its output was not kept."""


async def finish_despite_cancel(run: Awaitable[ToolResult], timer: asyncio.Timeout) -> ToolResult:
    """The result of what changes files, also when the turn is stopped meanwhile: it is let come to its end, which takes
    a moment, and what it came to is known. Then the turn goes on being stopped."""
    task, me = asyncio.ensure_future(run), asyncio.current_task()
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=WRITE_GRACE_SECONDS)
        if timer.expired() or not task.done() or me is None:
            raise
        me.uncancel()
        me.cancel()
        return task.result()


def gave_up_report(session: str, times: int) -> ErrorReport:
    """Why a turn is not taken up once more."""
    return ErrorReport(
        "gave_up",
        f"The turn was interrupted {times + 1} times and is not resumed again.",
        {"resumed": str(times)},
        (f"Look at what happened with `sylph session show {session}`.", "Send the message again, or retry it."),
    )


async def end_command(runner: RunnerClient, key: str) -> None:
    """Ends a command that an earlier Sylph left running. Its runner does not hear us, but writes down how it ended."""
    name = runner.newest_journal(key)
    for kindly in (True, False):
        story = read_journal(runner.folder / f"{name}.run")
        if story.ended or not story.runner_alive or (story.intent and story.intent.job):
            return
        if not kindly:
            kill_marked(name)
        elif story.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(story.started.pid, signal.SIGTERM)
        await _wait_for_end(runner, name)


async def _wait_for_end(runner: RunnerClient, name: str) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            while not read_journal(runner.folder / f"{name}.run").ended:  # noqa: ASYNC110 - a file of another process
                await asyncio.sleep(POLL_SECONDS)


def remove_journals(runner: RunnerClient, session: str, open_calls: Container[str]) -> None:
    """Removes the journals of a session's commands, but not of its jobs, nor of calls that have no result yet."""
    for path in runner.folder.glob(f"{session}.*.run") if runner.folder.is_dir() else ():
        call, story = path.stem.rpartition(".")[2].partition(ATTEMPT_SEPARATOR)[0], read_journal(path)
        # An empty one says that an order was taken back: whoever might still begin it has to find that.
        if call in open_calls or story.intent is None or story.intent.job:
            continue
        if not story.ended:
            kill_marked(path.stem)
        for kind in ("run", "out"):
            (runner.folder / f"{path.stem}.{kind}").unlink(missing_ok=True)


def interrupted_result(id: str, *, started: bool) -> ToolFinished:
    """The result of a call that a stopped or failed turn leaves behind."""
    said = "It was cut off while it ran; it may have had some effect." if started else "It was not started."
    return ToolFinished(call=id, ok=False, output=f"{STOPPED_PREFIX} {said}", trouble=ErrorReport("cancelled", said))


def is_interrupted_result(body: object) -> bool:
    """Whether it is the result that a stopped turn gave a call."""
    return isinstance(body, ToolFinished) and body.output.startswith(STOPPED_PREFIX) and body.trouble is not None
