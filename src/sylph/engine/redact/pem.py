"""Private keys in PEM: every line of one, whatever stands before it (numbers, a diff's marks), quoted or not."""

import re
from collections.abc import Iterator

KIND = "private-key"
HINT = "PRIVATE KEY"
# No key is longer; without its other end, so much is looked through.
MAX_KEY_LENGTH = 20_000
_EDGE = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
# A quoted line break is no part of the line that follows it.
_RUN = re.compile(r"\\[rn]|([A-Za-z0-9+/]{4,}={0,2}|=[A-Za-z0-9+/]{4})")
SURE_LENGTH = 32


def find_key_lines(text: str) -> Iterator[tuple[int, int]]:
    """Where each line of each key stands. A key that is cut off at one end is one as well."""
    edges = list(_EDGE.finditer(text))
    at = 0
    while at < len(edges):
        edge, after = edges[at], edges[at + 1] if at + 1 < len(edges) else None
        if edge[1] == "END":
            # Its beginning was left out.
            before = edges[at - 1].end() if at else 0
            yield from _body_lines(text, max(before, edge.start() - MAX_KEY_LENGTH), edge.start(), whole=True)
            at += 1
        elif after and after[1] == "END" and after.start() - edge.end() <= MAX_KEY_LENGTH:
            yield from _body_lines(text, edge.end(), after.start(), whole=True)
            at += 2
        else:
            upto = min(edge.end() + MAX_KEY_LENGTH, after.start() if after else len(text))
            yield from _body_lines(text, edge.end(), upto, whole=False)
            at += 1


def _body_lines(text: str, start: int, end: int, *, whole: bool) -> Iterator[tuple[int, int]]:
    runs = [match.span(1) for match in _RUN.finditer(text, start, end) if match[1]]
    sure = [at for at, run in enumerate(runs) if run[1] - run[0] >= SURE_LENGTH]
    for at in sure:
        yield runs[at]
    # The last line is mostly shorter.
    if sure and whole:
        yield from ((a, b) for a, b in runs[sure[-1] + 1 :] if not text[a:b].isdigit())
