"""Server-sent events out of a stream of bytes, wherever the network cuts it."""

from typing import NamedTuple

from sylph.core.errors import ProviderError

EVENT_LIMIT = 8 << 20
BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """`data` stays bytes: whoever parses it needs no text in between."""

    name: str
    data: bytes


class SseParser:
    """Feed it bytes; it gives the events they complete. Comments and unknown fields are passed over."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._begun = False
        self._after_cr = False
        self._held: list[bytes] = []  # pieces of a line that has not ended yet
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0  # of what is held, and of the data of the event so far

    def feed(self, data: bytes) -> list[SseEvent]:
        events: list[SseEvent] = []
        for line in self._take_lines(data):
            if line:
                self._read_field(line)
            elif self._data:
                events.append(self._finish_event())
            else:
                self._name = ""
        return events

    def close(self) -> list[SseEvent]:
        """The event that stands when the stream ends without its last empty line."""
        return self.feed(b"\n\n")

    def _take_lines(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes; the rest is held."""
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")  # A CRLF was cut in two, and its line is already taken.
        if b"\n" not in data and b"\r" not in data:
            self._hold_partial(data)
            return []
        self._after_cr = data.endswith(b"\r")
        lines = self._join_partial(data).splitlines()
        if not data.endswith((b"\n", b"\r")):
            self._hold_partial(lines.pop())
        return lines

    def _join_partial(self, data: bytes) -> bytes:
        if self._held:
            data = b"".join((*self._held, data))
            self._size -= sum(map(len, self._held))
            self._held.clear()
        if not self._begun:
            self._begun = True
            data = data.removeprefix(BOM)
        return data

    def _hold_partial(self, data: bytes) -> None:
        if data:
            self._held.append(data)
            self._check_size(len(data))

    def _check_size(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise ProviderError("format", f"The stream holds an event of more than {self._limit:,} bytes.")

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._check_size(len(value))
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")

    def _finish_event(self) -> SseEvent:
        event = SseEvent(self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
        self._name = ""
        self._size -= sum(map(len, self._data))
        self._data.clear()
        return event
