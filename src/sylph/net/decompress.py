"""A body as it was before it was packed for the way, with a bound on what comes out."""

import zlib

from sylph.core.errors import ProviderError

# What the standard library can unpack: this is what servers are offered.
ACCEPT_ENCODING = "gzip, deflate"


class BodyDecompressor:
    """Unpacks a stream piece by piece. Never gives more than was asked for, however small a bomb is packed."""

    def __init__(self, encoding: str) -> None:
        self._kind = encoding.strip().lower()
        if self._kind not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ProviderError("format", f"The answer is packed as {encoding!r}, which was not asked for.")
        self._packed = self._kind not in ("", "identity")
        self._machine = zlib.decompressobj(_window_bits(self._kind))
        self._begun = False

    def feed(self, data: bytes, room: int) -> bytes:
        """What `data` unpacks to: at most `room` bytes, the rest is dropped."""
        if not self._packed:
            return data[:room]
        parts: list[bytes] = []
        try:
            while data and room > 0:
                part, data = self._decompress_step(data, room)
                parts.append(part)
                room -= len(part)
        except zlib.error:
            raise ProviderError("format", f"The answer is not packed as it says ({self._kind}).") from None
        return b"".join(parts)

    @property
    def complete(self) -> bool:
        """Whether the packed stream has come to its end."""
        return not self._packed or not self._begun or self._machine.eof

    def _decompress_step(self, data: bytes, room: int) -> tuple[bytes, bytes]:
        if self._machine.eof and self._kind == "deflate":
            return b"", b""
        if self._machine.eof:
            self._machine = zlib.decompressobj(_window_bits(self._kind))  # gzip may be several in a row.
        try:
            part = self._machine.decompress(data, room)
        except zlib.error:
            if self._kind != "deflate" or self._begun:
                raise
            # Some servers leave the header of zlib out.
            self._machine = zlib.decompressobj(-zlib.MAX_WBITS)
            part = self._machine.decompress(data, room)
        self._begun = True
        return part, self._machine.unused_data or self._machine.unconsumed_tail


def _window_bits(kind: str) -> int:
    return zlib.MAX_WBITS if kind == "deflate" else zlib.MAX_WBITS | 16
