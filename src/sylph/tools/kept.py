"""Output of any length, in bounded memory: how it began and how it ended."""

from collections import deque
from typing import Final

MOST: Final = 10_000_000


class Kept:
    """Takes text piece by piece and keeps at most `most` characters of it: the first half and the last."""

    def __init__(self, most: int = MOST) -> None:
        self._room = most // 2
        self._most = most // 2
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._held = 0
        self._dropped = 0

    def add(self, text: str) -> None:
        head = text[: self._room]
        if head:
            self._head.append(head)
            self._room -= len(head)
        rest = text[len(head) :]
        if rest:
            self._tail.append(rest)
            self._held += len(rest)
        while self._held > self._most:
            self._forget(self._held - self._most)

    def text(self) -> str:
        note = [f"\n[… {self._dropped:,} characters dropped …]\n"] if self._dropped else []
        return "".join([*self._head, *note, *self._tail])

    def _forget(self, over: int) -> None:
        first = self._tail.popleft()
        if len(first) > over:
            self._tail.appendleft(first[over:])
        lost = min(over, len(first))
        self._held -= lost
        self._dropped += lost
