"""What the model sees of a tool's output: all of it, or its head and tail and where to find the rest."""

from typing import NamedTuple

from sylph.core.text.formatting import count_noun
from sylph.engine.log.hash_chain import output_digest


class TruncatedOutput(NamedTuple):
    """The shown text; where that is a part, the whole as bytes and their digest."""

    text: str
    whole: bytes = b""
    digest: str = ""


def truncate_output(text: str, call: str, *, lines: int, size: int) -> TruncatedOutput:
    """Cuts `text` to `lines` lines and `size` bytes. Tails matter (that is where errors stand), so both ends stay."""
    whole = text.encode("utf-8", "replace")
    text = whole.decode()
    total = text.count("\n") + 1
    if len(whole) <= size and total <= lines:
        return TruncatedOutput(text)
    head, tail = _head_and_tail(text, lines=lines, size=size)
    note = (
        f"\n[… {count_noun(total, 'line')}, {len(whole):,} bytes in all; this is the beginning and the end. "
        f'The whole: read path="output:{call}" with offset and limit …]\n'
    )
    return TruncatedOutput(head + note + tail, whole, output_digest(whole))


def _head_and_tail(text: str, *, lines: int, size: int) -> tuple[str, str]:
    parts = text.split("\n")
    if len(parts) > lines:
        head, tail = "\n".join(parts[: lines // 2]), "\n".join(parts[len(parts) - lines // 2 :])
    else:
        middle = len(text) // 2
        head, tail = text[:middle], text[middle:]
    return _cut_bytes(head, size // 2), _cut_bytes(tail, size // 2, end=True)


def _cut_bytes(text: str, size: int, *, end: bool = False) -> str:
    raw = text.encode()
    if len(raw) <= size:
        return text
    cut = raw[len(raw) - size :] if end else raw[:size]
    return cut.decode("utf-8", "ignore")
