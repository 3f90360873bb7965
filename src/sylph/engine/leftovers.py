"""What a turn leaves behind that was stopped or given up: calls without a result, commands that run, their journals."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Container

from sylph.core.errors import SylphError, Trouble
from sylph.core.tool import Result
from sylph.engine.processes import end_marked
from sylph.engine.runs import AGAIN, POLL, STOPPING, Runner
from sylph.engine.story import read_story

# What the result of a call begins with that a stopped turn left behind.
STOPPED = "[the turn was stopped]"
DROPPED = "dropped"
# How long a file that is being written is waited for when its turn is stopped.
WRITING = 5.0
NO_EFFECT = Result(
    text=f"{STOPPED} It had not taken effect.", ok=False, trouble=Trouble("no_effect", "It had not taken effect.")
)


class LeftOpen(SylphError):
    """Nothing is said of a call now: it was cut off in a log from a time when its output was not kept."""


async def whole(run: Awaitable[Result], timer: asyncio.Timeout) -> Result:
    """The result of what changes files, also when the turn is stopped meanwhile: it is let come to its end, which takes
    a moment, and what it came to is known. Then the turn goes on being stopped."""
    task, me = asyncio.ensure_future(run), asyncio.current_task()
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=WRITING)
        if timer.expired() or not task.done() or me is None:
            raise
        me.uncancel()
        me.cancel()
        return task.result()


def gave_up(session: str, times: int) -> Trouble:
    """Why a turn is not taken up once more."""
    return Trouble(
        "gave_up",
        f"The turn was interrupted {times + 1} times and is not resumed again.",
        {"resumed": str(times)},
        (f"Look at what happened with `sylph session show {session}`.", "Send the message again, or retry it."),
    )


async def end(runner: Runner, key: str) -> None:
    """Ends a command that an earlier Sylph left running. Its runner does not hear us, but writes down how it ended."""
    name = runner.newest(key)
    for kindly in (True, False):
        story = read_story(runner.folder / f"{name}.run")
        if story.ended or not story.watched or (story.intent and story.intent.job):
            return
        if not kindly:
            end_marked(name)
        elif story.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(story.started.pid, signal.SIGTERM)
        await _ended(runner, name)


async def _ended(runner: Runner, name: str) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STOPPING):
            while not read_story(runner.folder / f"{name}.run").ended:  # noqa: ASYNC110 - a file of another process
                await asyncio.sleep(POLL)


def tidy(runner: Runner, session: str, open_calls: Container[str]) -> None:
    """Removes the journals of a session's commands, but not of its jobs, nor of calls that have no result yet."""
    for path in runner.folder.glob(f"{session}.*.run") if runner.folder.is_dir() else ():
        call, story = path.stem.rpartition(".")[2].partition(AGAIN)[0], read_story(path)
        # An empty one says that an order was taken back: whoever might still begin it has to find that.
        if call in open_calls or story.intent is None or story.intent.job:
            continue
        if not story.ended:
            end_marked(path.stem)
        for kind in ("run", "out"):
            (runner.folder / f"{path.stem}.{kind}").unlink(missing_ok=True)
