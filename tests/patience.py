"""How tests wait: for what has to happen, not for a time in which it may have happened."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

# Machines are busy at times. This ends what hangs and measures nothing: whoever waits longer waits in vain.
PATIENCE = 120.0
PAUSE = 0.02


@overload
async def eventually(holds: Callable[[], Awaitable[T | None]], what: str = "") -> T: ...
@overload
async def eventually(holds: Callable[[], T | None], what: str = "") -> T: ...
async def eventually(holds: Callable[[], Any], what: str = "") -> Any:
    """Asks again and again until the answer is true, and returns it; `what` says what was waited for."""
    end = time.monotonic() + PATIENCE
    while True:
        answer = holds()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < end, vain(holds, what, answer)
        await asyncio.sleep(PAUSE)


def eventually_true(holds: Callable[[], T], what: str = "") -> T:
    """The same, where no event loop runs."""
    end = time.monotonic() + PATIENCE
    while not (answer := holds()):
        assert time.monotonic() < end, vain(holds, what, answer)
        time.sleep(PAUSE)
    return answer


def vain(holds: Callable[[], object], what: str, answer: object) -> str:
    if not what:
        code = getattr(holds, "__code__", None)
        what = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(holds)
    return f"Waited {PATIENCE:.0f} s in vain for: {what} (last seen: {answer!r})"


def waiting(name: str) -> str:
    """A shell command that goes on as soon as there is such a file."""
    return f"until [ -e {name} ]; do sleep 0.05; done"
