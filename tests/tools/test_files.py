import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.plain_user import ignores_modes, rerun_as_plain_user
from tests.tools.desk import TOOLS, Desk, refused

from sylph.tools.files.read import line_range
from sylph.tools.files.write import WRITE, WriteArgs

NUMBERED = "".join(f"line {number}\n" for number in range(1, 101))


async def test_a_small_file_is_shown_as_it_is(desk: Desk) -> None:
    desk.write("a.txt", "one\ntwo\n")
    assert (await desk.use("read", path="a.txt")).text == "one\ntwo\n"


async def test_a_part_says_which_lines_it_is_and_how_to_go_on(desk: Desk) -> None:
    desk.write("a.txt", NUMBERED)
    result = await desk.use("read", path="a.txt", offset=11, limit=2)
    assert result.text == "[lines 11-12 of 100; go on with offset=13]\nline 11\nline 12\n"


async def test_the_last_part_does_not_invite_to_go_on(desk: Desk) -> None:
    desk.write("a.txt", NUMBERED + "no newline")
    result = await desk.use("read", path="a.txt", offset=101)
    assert result.text == "[lines 101-101 of 101]\nno newline"


async def test_reading_past_the_end_tells_where_the_end_is(desk: Desk) -> None:
    desk.write("a.txt", NUMBERED)
    with refused("out_of_range") as caught:
        await desk.use("read", path="a.txt", offset=200)
    assert caught.value.trouble.details == {"lines": "100"}


async def test_an_empty_file_is_said_to_be_empty(desk: Desk) -> None:
    desk.write("a.txt", "")
    assert (await desk.use("read", path="a.txt")).text == "[a.txt is empty]"


async def test_a_long_file_is_read_in_parts_that_add_up(desk: Desk) -> None:
    text = "".join(f"{number} {'x' * 90}\n" for number in range(1, 3001))
    desk.write("a.txt", text)
    parts, offset = "", 1
    while offset <= 3000:
        head, _, body = (await desk.use("read", path="a.txt", offset=offset)).text.partition("\n")
        assert len(body) <= line_range.BYTES
        parts += body
        offset = int(head.split("-")[1].split()[0]) + 1
    assert parts == text


async def test_one_endless_line_is_cut_and_the_next_is_reachable(desk: Desk) -> None:
    desk.write("a.txt", "ö" * line_range.BYTES + "\nnext\n")
    first = await desk.use("read", path="a.txt")
    assert first.text.startswith("[lines 1-1 of 2; line 1 is too long and cut; go on with offset=2]\nöö")
    assert "�" not in first.text
    assert (await desk.use("read", path="a.txt", offset=2)).text == "[lines 2-2 of 2]\nnext\n"


async def test_a_huge_file_is_read_without_loading_it(desk: Desk) -> None:
    path = desk.write("huge", "first\n")
    with path.open("r+b") as file:
        file.seek(line_range.COUNTED + 10)
        file.write(b"\nlast\n")
    with path.open("r+b") as file:  # no NUL near the start, or it would count as binary
        file.write(b"x\n" * 50_000)
    result = await desk.use("read", path="huge", limit=1)
    assert result.text == "[lines 1-1; go on with offset=2]\nx\n"


async def test_carriage_returns_and_the_mark_are_not_shown(desk: Desk) -> None:
    desk.write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert (await desk.use("read", path="a.txt")).text == "one\ntwo\n"


async def test_bytes_that_are_no_text_are_marked(desk: Desk) -> None:
    desk.write("a.txt", b"caf\xe9\n")
    assert (await desk.use("read", path="a.txt")).text == "caf�\n"


async def test_a_binary_file_is_refused_with_another_way(desk: Desk) -> None:
    desk.write("a.bin", b"\x7fELF\0\0")
    with refused("binary_file") as caught:
        await desk.use("read", path="a.bin")
    assert "xxd" in caught.value.trouble.next[0]


async def test_a_missing_file_comes_with_names_that_are_near(desk: Desk) -> None:
    desk.write("src/settings.py", "")
    with refused("not_found") as caught:
        await desk.use("read", path="src/setting.py")
    assert caught.value.trouble.next == ("Did you mean src/settings.py?",)


async def test_a_missing_folder_is_no_trouble_for_the_hint(desk: Desk) -> None:
    with refused("not_found"):
        await desk.use("read", path="no/such/file")


async def test_too_long_a_name_is_said_to_be_so_by_every_tool(desk: Desk) -> None:
    name = "x" * 300
    with refused("name_too_long"):
        await desk.use("read", path=name)
    with refused("name_too_long"):
        await desk.use("write", path=name, content="")
    with refused("name_too_long"):
        await desk.use("list", path=name)
    with refused("name_too_long"):
        await desk.use("find", pattern="*", path=name)
    assert WRITE.judge
    assert WRITE.judge(WriteArgs(path=name, content=""), desk.context).risk == "dangerous"


async def test_reading_a_folder_points_to_list(desk: Desk) -> None:
    with refused("is_directory") as caught:
        await desk.use("read", path=".")
    assert caught.value.trouble.next == ("list(path='.')",)


async def test_a_pipe_is_refused_instead_of_waited_for(desk: Desk) -> None:
    os.mkfifo(desk.workspace / "pipe")
    with refused("not_a_file"):
        await desk.use("read", path="pipe")


async def test_the_whole_of_an_earlier_output_can_be_read(desk: Desk) -> None:
    desk.kept["t1_c3"] = NUMBERED
    result = await desk.use("read", path="output:t1_c3", offset=100)
    assert result.text == "[lines 100-100 of 100]\nline 100\n"
    with refused("not_found"):
        await desk.use("read", path="output:t9_c9")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(st.sampled_from("ab\n"), max_size=40), offset=st.integers(1, 12), limit=st.integers(1, 12))
def test_any_part_is_the_lines_it_claims_to_be(desk: Desk, text: str, offset: int, limit: int) -> None:
    path = desk.write("a.txt", text)
    all_lines = text.splitlines(keepends=True)
    with path.open("rb") as file:
        found = line_range.read_range(file, offset=offset, limit=limit)
    assert found.text == "".join(all_lines[offset - 1 : offset - 1 + limit])
    assert found.total == len(all_lines) or not found.text


async def test_writing_makes_the_folders_it_needs(desk: Desk) -> None:
    result = await desk.use("write", path="a/b/ü ø.txt", content="one\ntwo\n")
    assert result.text == "Created a/b/ü ø.txt: 2 lines."
    assert (desk.workspace / "a/b/ü ø.txt").read_text() == "one\ntwo\n"


async def test_a_replaced_file_keeps_its_mode_its_mark_and_its_line_ends(desk: Desk) -> None:
    path = desk.write("a.sh", b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o751)
    await desk.use("write", path="a.sh", content="three\nfour\n")
    assert path.read_bytes() == b"\xef\xbb\xbfthree\r\nfour\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_new_file_has_the_mode_any_program_would_give_it(desk: Desk) -> None:
    (desk.workspace / "plain").touch()
    await desk.use("write", path="ours", content="")
    assert (desk.workspace / "ours").stat().st_mode == (desk.workspace / "plain").stat().st_mode


async def test_writing_through_a_link_keeps_the_link(desk: Desk) -> None:
    target = desk.write("target", "old")
    (desk.workspace / "link").symlink_to("target")
    await desk.use("write", path="link", content="new")
    assert (desk.workspace / "link").is_symlink()
    assert target.read_text() == "new"


async def test_writing_over_a_folder_or_below_a_file_is_refused(desk: Desk) -> None:
    desk.write("dir/file", "")
    with refused("is_directory"):
        await desk.use("write", path="dir", content="")
    with refused("not_a_directory"):
        await desk.use("write", path="dir/file/x", content="")


async def test_a_write_protected_file_stays_as_it_is(desk: Desk, request: pytest.FixtureRequest) -> None:
    if ignores_modes():
        await asyncio.to_thread(rerun_as_plain_user, request.node.nodeid)
        return
    path = desk.write("a.txt", "old")
    path.chmod(0o444)
    with refused("permission_denied"):
        await desk.use("write", path="a.txt", content="new")
    assert path.read_text() == "old"


async def test_nothing_is_written_outside_or_into_git(desk: Desk) -> None:
    (desk.workspace / "link").symlink_to(desk.workspace.parent / "outside")
    with refused("outside_workspace"):
        await desk.use("write", path="link/new.txt", content="")
    with refused("protected_path"):
        await desk.use("write", path=".git/hooks/pre-commit", content="")
    assert not (desk.workspace / ".git").exists()


async def test_writers_at_the_same_time_never_mix_and_leave_nothing_behind(desk: Desk) -> None:
    texts = [str(number) * 100_000 for number in range(8)]
    calls = (
        WRITE.run(WriteArgs(path="a.txt", content=text), replace(desk.context, call=f"t1_c{number}"))
        for number, text in enumerate(texts)
    )
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert any(not isinstance(result, BaseException) for result in results)
    assert (desk.workspace / "a.txt").read_text() in texts
    assert [path.name for path in desk.workspace.iterdir()] == ["a.txt"]


async def test_the_preview_of_a_write_is_a_diff(desk: Desk) -> None:
    desk.write("a.txt", "one\ntwo\n")
    shown = await desk.preview("write", path="a.txt", content="one\n2\n")
    assert shown.splitlines() == ["--- a/a.txt", "+++ b/a.txt", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert (desk.workspace / "a.txt").read_text() == "one\ntwo\n"


async def test_the_preview_of_a_new_file_is_how_it_begins(desk: Desk) -> None:
    shown = await desk.preview("write", path="a.txt", content="x\n" * 50)
    assert shown.splitlines()[:2] == ["a.txt: new file, 50 lines", "+x"]
    assert shown.splitlines()[-1] == "… 10 more lines"


async def test_the_preview_says_when_a_binary_file_would_go(desk: Desk) -> None:
    desk.write("a.bin", b"\0")
    assert await desk.preview("write", path="a.bin", content="x") == "a.bin: a binary file is replaced by 1 line"


@pytest.mark.parametrize(
    ("name", "risk"),
    [
        ("new.txt", "safe"),
        ("old.txt", "caution"),
        (".bashrc", "caution"),
        (".git/config", "dangerous"),
        ("../x", "dangerous"),
    ],
)
def test_the_risk_of_a_write_is_what_it_could_lose(desk: Desk, name: str, risk: str) -> None:
    desk.write("old.txt", "")
    assert WRITE.judge
    judged = WRITE.judge(WriteArgs(path=name, content=""), desk.context)
    assert (judged.effect, judged.risk) == ("write", risk)


async def test_a_folder_is_listed_by_name_with_folders_and_links_marked(desk: Desk) -> None:
    desk.write("src/app.py", "")
    desk.write("README", "")
    desk.write(".env", "")
    (desk.workspace / "link").symlink_to("README")
    assert (await desk.use("list")).text == "README\nlink -> README\nsrc/"
    deeper = await desk.use("list", depth=2, hidden=True)
    assert deeper.text == ".env\nREADME\nlink -> README\nsrc/\n  app.py"


async def test_a_full_folder_does_not_hide_its_neighbours(desk: Desk) -> None:
    for number in range(1500):
        desk.write(f"a/{number:04}", "")
    desk.write("b/x", "")
    listed = (await desk.use("list", depth=2)).text.splitlines()
    assert {"a/", "b/"} <= set(listed)
    assert listed[-1].startswith("[left out: 502 entries and the content of 1 folders")


async def test_links_are_not_followed_and_git_is_not_opened(desk: Desk) -> None:
    (desk.workspace / "out").symlink_to(desk.workspace.parent / "outside")
    desk.write(".git/config", "")
    assert "secret" not in (listed := (await desk.use("list", depth=5, hidden=True)).text)
    assert "config" not in listed


async def test_listing_a_file_an_empty_folder_or_nothing_says_so(desk: Desk) -> None:
    desk.write("a.txt", "")
    (desk.workspace / "empty").mkdir()
    with refused("not_a_directory"):
        await desk.use("list", path="a.txt")
    with refused("not_found"):
        await desk.use("list", path="nothing")
    assert (await desk.use("list", path="empty")).text == "[empty is empty]"


async def test_every_name_on_the_disk_can_be_shown(desk: Desk) -> None:
    (Path(os.fsencode(desk.workspace).decode()) / os.fsdecode(b"\xff\n")).touch()
    assert (await desk.use("list")).text == "�\\x0a"


def test_every_field_of_every_tool_is_described_or_speaks_for_itself() -> None:
    plain = {"ignore_case", "questions", "path", "paths", "depth"}
    for tool in TOOLS.values():
        for name, field in tool.spec.schema["properties"].items():
            assert "description" in field or name in plain, f"{tool.name}.{name}"
