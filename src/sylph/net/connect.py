"""Connecting to the first of several addresses that answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
# A host with several addresses may have one that swallows everything; the others get their turn.
ATTEMPT_SECONDS = 2.5


async def connect_first(places: Sequence[str], connect: Callable[[str], Awaitable[T]]) -> T:
    """The first connection that comes about, tried one after the other; the last failure if none does."""
    for place in places[:-1]:
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                return await connect(place)
        except OSError:  # A TimeoutError is one too.
            continue
    return await connect(places[-1])
