"""Text that cannot control a terminal, whole and in pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.interfaces.text.sanitize import StreamSanitizer, escape_hidden, has_hidden, sanitize_text

HOSTILE = st.text(alphabet=st.sampled_from("a1;m[]P\\ \n\x07\x1b\x9b\x00漢"), max_size=30)


@given(HOSTILE, st.lists(st.integers(0, 30)))
def test_pieces_are_cleaned_like_the_whole(text: str, cuts: list[int]) -> None:
    cleaner = StreamSanitizer()
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert "".join(map(cleaner.add, pieces)) + cleaner.flush() == sanitize_text(text)


@given(st.text())
def test_nothing_that_controls_is_left(text: str) -> None:
    assert not {"\x1b", "\x9b", "\r", "\x07", "\u202e"} & set(sanitize_text(text))


def test_a_sequence_without_an_end_does_not_swallow_the_rest() -> None:
    cleaner = StreamSanitizer()
    assert cleaner.add("\x1b]0;" + "x" * 5000) == "0;" + "x" * 5000


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("a\rb", r"a\rb"),
        ("\x1b[2Kx", r"\x1b[2Kx"),
        ("rm \u202etxt.", r"rm \u202etxt."),
        ("ls\u200b -l", r"ls\u200b -l"),
        ("a\U000e0041", r"a\U000e0041"),
        ("rm\u200d", r"rm\u200d"),
    ],
)
def test_nothing_hides(hidden: str, shown: str) -> None:
    assert escape_hidden(hidden) == shown
    assert has_hidden(hidden)


@pytest.mark.parametrize("text", ["tab\tand\nline", "one\r\ntwo", "äöü 漢字 👩\u200d👧"])
def test_what_everybody_writes_is_not_suspected(text: str) -> None:
    assert not has_hidden(text)
