"""Text that is put together from sentences."""

import pytest

from sylph.core.text import clause, sentence


@pytest.mark.parametrize(
    ("said", "ends"), [("It is gone", "It is gone."), ("It is gone.", "It is gone."), ("Is it right?", "Is it right?")]
)
def test_a_sentence_has_one_mark_at_its_end(said: str, ends: str) -> None:
    assert sentence(said) == ends


def test_a_clause_goes_on() -> None:
    assert clause("It is gone.") == clause("It is gone") == "It is gone"
