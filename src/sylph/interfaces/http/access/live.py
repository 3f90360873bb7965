"""Streams that stay open, by the credential that opened them: they end with it."""

import asyncio

from msgspec import Struct

from sylph.interfaces.http.keys import Keys


class Stream(Struct, eq=False):
    """One open stream. `cut` tells its own end from the server's."""

    key: str
    task: asyncio.Task[object] | None
    cut: bool = False


class Live:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._streams: set[Stream] = set()

    def open(self, key: str, task: asyncio.Task[object] | None) -> Stream:
        """`task` is the one that serves all of it, not one that only writes."""
        stream = Stream(key, task)
        self._streams.add(stream)
        return stream

    def close(self, stream: Stream) -> None:
        self._streams.discard(stream)

    def sweep(self) -> None:
        """Ends what a credential opened that is revoked or expired by now."""
        if not self._streams:
            return
        good = self._keys.live({stream.key for stream in self._streams})
        for stream in [each for each in self._streams if each.key not in good and not each.cut]:
            stream.cut = True
            if stream.task:
                stream.task.cancel()
