"""Reading what is not plain text: images, PDFs, notebooks, and what nobody can read."""

import json

import pytest
from tests.tools.desk import TOOLS, Desk, refused
from tests.tools.pictures import GIF, JPEG, WEBP, pdf, png

from sylph.core.tool import CallAssessment
from sylph.tools.files.read.images import LARGEST
from sylph.tools.files.read.pdf import read_pdf as pdf_read
from sylph.tools.files.read.read_file import ReadArgs


@pytest.mark.parametrize(
    ("data", "media", "size"),
    [
        (png(), "image/png", "3 x 2"),
        (JPEG, "image/jpeg", "7 x 5"),
        (GIF, "image/gif", "9 x 8"),
        (WEBP, "image/webp", "11 x 12"),
    ],
)
async def test_an_image_is_known_by_its_bytes_and_handed_over(desk: Desk, data: bytes, media: str, size: str) -> None:
    desk.write("picture.txt", data)
    result = await desk.use("read", path="picture.txt")
    assert result.text == f"[picture.txt: {media}, {size}, {len(data)} bytes]"
    assert [(image.data, image.media, image.name) for image in result.images] == [(data, media, "picture.txt")]


async def test_half_an_image_is_refused(desk: Desk) -> None:
    desk.write("a.png", png()[:-20])
    with refused("damaged_file"):
        await desk.use("read", path="a.png")


async def test_too_large_an_image_is_refused_with_what_to_do(desk: Desk) -> None:
    desk.write("a.png", png(padding=LARGEST))
    with refused("too_large") as caught:
        await desk.use("read", path="a.png")
    assert "smaller copy" in caught.value.trouble.next[0]


async def test_a_pdf_is_read_page_by_page(desk: Desk) -> None:
    desk.write("a.pdf", pdf("first page", "second page", "third page"))
    assert (await desk.use("read", path="a.pdf")).text == (
        "[PDF, pages 1-3 of 3]\n[page 1]\nfirst page\n[page 2]\nsecond page\n[page 3]\nthird page\n"
    )
    part = await desk.use("read", path="a.pdf", offset=2, limit=1)
    assert part.text == "[PDF, pages 2-2 of 3; go on with offset=3]\n[page 2]\nsecond page\n"
    with refused("out_of_range"):
        await desk.use("read", path="a.pdf", offset=4)


async def test_a_pdf_that_was_being_read_when_sylph_died_is_read(desk: Desk) -> None:
    """The journal of the first try is still there, whether it had ended or not."""
    path = desk.write("a.pdf", pdf("first page"))
    context = desk.context
    first = await pdf_read(path, "a.pdf", context, offset=1, limit=1)
    assert await pdf_read(path, "a.pdf", context, offset=1, limit=1) == first


async def test_a_pdf_without_text_or_sense_says_so(desk: Desk) -> None:
    desk.write("scan.pdf", pdf(""))
    assert "scanned images" in (await desk.use("read", path="scan.pdf")).text
    desk.write("bad.pdf", b"%PDF-1.7\n" + b"\xff\0" * 500)
    with refused("unreadable"):
        await desk.use("read", path="bad.pdf")


async def test_a_notebook_is_read_as_its_cells(desk: Desk) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "1 / 0",
            "outputs": [
                {"output_type": "stream", "text": ["hello\n"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}},
                {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m: v"]},
                {"output_type": "stream", "text": "x" * 10_000},
            ],
        },
    ]
    desk.write("a.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    text = (await desk.use("read", path="a.ipynb")).text
    assert text.startswith("[cell 1: markdown]\n# Title\ntext\n[cell 2: code]\n1 / 0\n[output of cell 2]\nhello\n")
    assert "<Figure>\n[image/png]\n[output of cell 2]\nE: v\n" in text
    assert len(text) < 6_000
    assert (await desk.use("read", path="a.ipynb", offset=2, limit=1)).text.endswith("# Title\n")


async def test_a_broken_notebook_is_read_as_text(desk: Desk) -> None:
    desk.write("a.ipynb", '{"cells": [')
    assert (await desk.use("read", path="a.ipynb")).text == '{"cells": ['


async def test_what_nobody_can_read_is_said_to_be_so(desk: Desk) -> None:
    desk.write("a.bin", b"\x7fELF\0\0\0")
    with refused("binary_file"):
        await desk.use("read", path="a.bin")


def test_it_says_which_file_it_reads(desk: Desk) -> None:
    judge = TOOLS["read"].judge
    assert judge
    (desk.workspace / "link").symlink_to("real.txt")
    assert judge(ReadArgs(path="link"), desk.context).reads == (str(desk.workspace / "real.txt"),)
    for odd in ("../outside/secret.txt", "a\0b", "", "output:t1_c1"):
        assert judge(ReadArgs(path=odd), desk.context) == CallAssessment("read", "safe")
