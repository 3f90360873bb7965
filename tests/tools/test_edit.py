import os
import stat

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.tools.desk import Desk, refused

from sylph.core.errors import ToolError
from sylph.tools.files.edit.edit_file import EDIT, EditArgs, fit_line_ends
from sylph.tools.files.text_file import LARGEST

TEXT = st.text(st.sampled_from("ab \n"), max_size=30)


async def test_the_text_is_replaced_and_the_line_is_told(desk: Desk) -> None:
    path = desk.write("a.py", "one\ntwo\nthree\n")
    assert (await desk.use("edit", path="a.py", old="two", new="2")).text == "a.py: 1 replacement, line 2."
    assert path.read_text() == "one\n2\nthree\n"


async def test_all_replaces_every_one(desk: Desk) -> None:
    path = desk.write("a.py", "x\ny\nx\n")
    result = await desk.use("edit", path="a.py", old="x", new="z", all=True)
    assert result.text == "a.py: 2 replacements, line 1, 3."
    assert path.read_text() == "z\ny\nz\n"


async def test_text_that_is_not_unique_is_refused_with_the_places(desk: Desk) -> None:
    path = desk.write("a.py", "x\ny\nx\n")
    with refused("not_unique") as caught:
        await desk.use("edit", path="a.py", old="x", new="z")
    assert caught.value.trouble.details == {"lines": "1, 3"}
    assert path.read_text() == "x\ny\nx\n"


async def test_text_that_is_not_there_is_refused_with_the_nearest_place(desk: Desk) -> None:
    desk.write("a.py", "import os\n\ndef greet(name):\n    return f'hello {name}'\n")
    with refused("no_match") as caught:
        await desk.use("edit", path="a.py", old="def greet(names):\n  return 1", new="")
    assert "3: def greet(name):\n4:     return f'hello {name}'" in str(caught.value)


@pytest.mark.parametrize("old", ["zzzzqqqq", "\n\n\n\n"])
async def test_where_nothing_is_near_no_place_is_made_up(desk: Desk, old: str) -> None:
    desk.write("a.py", "import os\n")
    with refused("no_match") as caught:
        await desk.use("edit", path="a.py", old=old, new="")
    assert "Nearest" not in str(caught.value)


async def test_an_edit_that_changes_nothing_is_refused(desk: Desk) -> None:
    desk.write("a.py", "x")
    with refused("no_change"):
        await desk.use("edit", path="a.py", old="x", new="x")


async def test_a_dos_file_matches_plain_lines_and_stays_one(desk: Desk) -> None:
    path = desk.write("a.bat", b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    path.chmod(0o755)
    await desk.use("edit", path="a.bat", old="one\ntwo", new="1\n2\n2b")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2b\r\nthree\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


async def test_in_a_file_of_mixed_line_ends_each_place_keeps_its_own(desk: Desk) -> None:
    path = desk.write("a.txt", b"one\r\ntwo\r\nthree\nfour\n")
    await desk.use("edit", path="a.txt", old="one\ntwo", new="1\n2")
    await desk.use("edit", path="a.txt", old="three\nfour", new="3\n4")
    assert path.read_bytes() == b"1\r\n2\r\n3\n4\n"


def test_a_line_end_alone_never_splits_a_dos_one() -> None:
    assert fit_line_ends("a\r\nb\r\n", "\nb", "\nc") == ("\r\nb", "\r\nc")


async def test_bytes_that_are_no_text_survive_an_edit_beside_them(desk: Desk) -> None:
    path = desk.write("a.txt", b"caf\xe9\nname\n")
    await desk.use("edit", path="a.txt", old="name", new="näme")
    assert path.read_bytes() == b"caf\xe9\nn\xc3\xa4me\n"


async def test_what_is_no_text_file_is_refused(desk: Desk) -> None:
    desk.write("a.bin", b"a\0b")
    for name, kind in {"a.bin": "binary_file", ".": "is_directory", "none": "not_found"}.items():
        with refused(kind):
            await desk.use("edit", path=name, old="a", new="b")


async def test_a_file_too_large_to_hold_is_refused(desk: Desk) -> None:
    os.truncate(desk.write("a.txt", ""), LARGEST + 1)
    with refused("too_large"):
        await desk.use("edit", path="a.txt", old="a", new="b")


async def test_the_preview_is_a_diff_and_nothing_is_written(desk: Desk) -> None:
    path = desk.write("a.py", "one\ntwo\n")
    assert (await desk.preview("edit", path="a.py", old="two", new="2")).endswith(" one\n-two\n+2")
    assert path.read_text() == "one\ntwo\n"


async def test_the_preview_of_a_long_file_says_only_how_long(desk: Desk) -> None:
    desk.write("a.py", "x\n" * 30_000 + "y\n")
    assert (await desk.preview("edit", path="a.py", old="y", new="z")) == (
        "a.py: 30,001 lines become 30,001 lines (too long to compare)"
    )


def test_an_edit_is_safe_inside_and_dangerous_where_it_would_be_refused(desk: Desk) -> None:
    assert EDIT.judge
    assert EDIT.judge(EditArgs(path="a", old="x", new=""), desk.context).risk == "safe"
    assert EDIT.judge(EditArgs(path=".git/config", old="x", new=""), desk.context).risk == "dangerous"


async def test_occurrences_that_overlap_are_two_places_but_one_replacement(desk: Desk) -> None:
    path = desk.write("a.txt", "aaa\n")
    with refused("not_unique"):
        await desk.use("edit", path="a.txt", old="aa", new="b")
    assert (await desk.use("edit", path="a.txt", old="aa", new="b", all=True)).text == "a.txt: 1 replacement, line 1."
    assert path.read_text() == "ba\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=TEXT, middle=TEXT, after=TEXT, new=TEXT, dos=st.booleans())
async def test_an_edit_and_its_reverse_give_the_same_bytes(
    desk: Desk, before: str, middle: str, after: str, new: str, dos: bool
) -> None:
    assume(middle and new and middle != new)
    text = before + middle + after
    data = (text.replace("\n", "\r\n") if dos else text).encode()
    path = desk.write("a.txt", data)
    try:
        await desk.use("edit", path="a.txt", old=middle, new=new)
        assert path.read_bytes() != data
        await desk.use("edit", path="a.txt", old=new, new=middle)
    except ToolError as error:
        assume(error.trouble.kind != "not_unique")
        raise
    back = path.read_bytes()
    # A text without a single line end no longer knows that it was a DOS file.
    assert back == data or (dos and "\n" not in before + after and back.replace(b"\r\n", b"\n") == text.encode())
