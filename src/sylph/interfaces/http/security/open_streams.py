"""Streams that stay open, by the credential that opened them: they end with it."""

import asyncio

from msgspec import Struct

from sylph.interfaces.http.security.token_store import ServerTokenStore


class OpenStream(Struct, eq=False):
    """One open stream. `cut` tells its own end from the server's."""

    token_id: str
    task: asyncio.Task[object] | None
    revoked: bool = False


class OpenStreamRegistry:
    def __init__(self, keys: ServerTokenStore) -> None:
        self._keys = keys
        self._streams: set[OpenStream] = set()

    def register_stream(self, key: str, task: asyncio.Task[object] | None) -> OpenStream:
        """`task` is the one that serves all of it, not one that only writes."""
        stream = OpenStream(key, task)
        self._streams.add(stream)
        return stream

    def unregister_stream(self, stream: OpenStream) -> None:
        self._streams.discard(stream)

    def cancel_revoked(self) -> None:
        """Ends what a credential opened that is revoked or expired by now."""
        if not self._streams:
            return
        good = self._keys.filter_valid({stream.token_id for stream in self._streams})
        for stream in [each for each in self._streams if each.token_id not in good and not each.revoked]:
            stream.revoked = True
            if stream.task:
                stream.task.cancel()
