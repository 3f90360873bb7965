"""The handbook says what the code says."""

from pathlib import Path

import pytest

from sylph.interfaces.cli.reference import PARTS, filled

HANDBOOK = Path(__file__).parents[3] / "docs" / "handbook"


@pytest.mark.parametrize("page", ["api.md", "command-line.md", "configuration.md", "exit-codes.md"])
def test_generated_parts_are_up_to_date(page: str) -> None:
    text = (HANDBOOK / page).read_text(encoding="utf-8")
    assert filled(text) == text, "scripts/reference brings it up to date"


def test_every_subject_has_one_table() -> None:
    heads = [
        line for line in filled((HANDBOOK / "api.md").read_text(encoding="utf-8")).splitlines() if line[:4] == "### "
    ]
    assert len(heads) == len(set(heads))


def test_every_part_stands_in_the_handbook() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in HANDBOOK.glob("*.md"))
    assert all(f"made from the code: {part} -->" in pages for part in PARTS)
