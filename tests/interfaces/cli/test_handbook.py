"""The handbook says what the code says."""

import re
from pathlib import Path

import pytest

from sylph.interfaces.handbook_blocks import BLOCK_MAKERS, fill_blocks

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
HANDBOOK = Path(__file__).parents[3] / "docs" / "handbook"


@pytest.mark.parametrize("page", ["api.md", "command-line.md", "configuration.md", "exit-codes.md"])
def test_generated_parts_are_up_to_date(page: str) -> None:
    text = (HANDBOOK / page).read_text(encoding="utf-8")
    assert fill_blocks(text) == text, "scripts/reference brings it up to date"


def test_every_subject_has_one_table() -> None:
    heads = [line for line in BLOCK_MAKERS["routes"]().splitlines() if line.startswith("### ")]
    assert len(heads) == len(set(heads))


def test_every_part_stands_in_the_handbook() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in HANDBOOK.glob("*.md"))
    assert all(f"made from the code: {part} -->" in pages for part in BLOCK_MAKERS)


PAGES = sorted(page.name for page in HANDBOOK.glob("*.md"))


def test_the_index_lists_every_page() -> None:
    listed = {target for target, _ in LINK.findall((HANDBOOK / "README.md").read_text(encoding="utf-8"))}
    assert set(PAGES) - {"README.md"} <= listed


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for target, place in LINK.findall((HANDBOOK / page).read_text(encoding="utf-8")):
        file = HANDBOOK / (target or page)
        assert file.exists(), f"{page} links to {target}"
        assert not place or place in anchors(file), f"{page} links to {target}#{place}"


def anchors(file: Path) -> set[str]:
    """The headings of a page, as links name them."""
    heads = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize(
    ("page", "others"),
    [
        ("server.md", "server-access api streams openai-clients files-over-http settings-over-http monitoring"),
        ("server-access.md", "server api"),
        (
            "api.md",
            "server server-access streams files-over-http settings-over-http openai-clients monitoring identity",
        ),
        ("streams.md", "api server-access"),
        ("openai-clients.md", "server-access api"),
        ("files-over-http.md", "api server-access"),
        ("settings-over-http.md", "api identity server-access"),
        ("monitoring.md", "server server-access api"),
        ("identity.md", "settings-over-http"),
    ],
)
def test_pages_about_the_server_name_each_other(page: str, others: str) -> None:
    linked = {target for target, _ in LINK.findall((HANDBOOK / page).read_text(encoding="utf-8"))}
    assert {f"{other}.md" for other in others.split()} <= linked
