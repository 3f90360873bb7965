"""Text that is put together from sentences."""

import pytest

from sylph.core.text.formatting import end_sentence, strip_full_stop


@pytest.mark.parametrize(
    ("said", "ends"), [("It is gone", "It is gone."), ("It is gone.", "It is gone."), ("Is it right?", "Is it right?")]
)
def test_a_sentence_has_one_mark_at_its_end(said: str, ends: str) -> None:
    assert end_sentence(said) == ends


def test_a_clause_goes_on() -> None:
    assert strip_full_stop("It is gone.") == strip_full_stop("It is gone") == "It is gone"
