"""The files of a workspace through the running server: browsed, read, written, moved, deleted, brought back."""

import asyncio
import io
import os
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest
import pytest_asyncio
from tests.http.served import Served
from tests.http.sharing import sharing
from tests.http.workspace import Workspace, problem

MEMORY = Path("/dev/shm")
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with sharing(tmp_path_factory.mktemp("served"), []) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def workspace(served: Served, tmp_path: Path) -> Workspace:
    return await Workspace.added(served, tmp_path / "own")


async def test_a_folder_is_listed_page_by_page(workspace: Workspace) -> None:
    root = workspace.root
    for name in ("b.txt", "a.txt", ".hidden", "sylph_notes.txt", "ä ö.txt", "c?d#e&f=g%2F.txt"):
        (root / name).write_text("x")
    (root / "sub").mkdir()
    (root / "sub" / "inner.txt").write_text("inner")
    (root / "to-b").symlink_to("b.txt")
    (root / "out").symlink_to("/etc/passwd")
    (root / os.fsdecode(b"\xff\xfe.bin")).write_bytes(b"odd")
    os.mkfifo(root / "pipe")
    first = (await workspace.get("", limit=4)).json()
    rest = (await workspace.get("", limit=200, cursor=first["next"])).json()
    assert len(first["items"]) == 4
    assert "next" not in rest or rest["next"] is None
    items = [*first["items"], *rest["items"]]
    assert items[0]["name"] == "sub"
    assert items[0]["kind"] == "folder"
    named = {each["name"]: each for each in items}
    assert len(named) == 11
    assert named[".hidden"]["hidden"]
    assert (named["to-b"]["kind"], named["to-b"]["to"], named["to-b"]["to_kind"]) == ("link", "b.txt", "file")
    assert named["out"]["to"] is None
    assert named["pipe"]["kind"] == "other"
    assert [each["name"] for each in await workspace.list("sub")] == ["inner.txt"]
    assert ".hidden" not in [each["name"] for each in await workspace.list(hidden="false")]
    for each in items:
        if each["kind"] == "file":
            read = await workspace.get("/content", path=each["path"])
            assert read.content in (b"x", b"odd"), each
    assert problem(await workspace.get("", path="b.txt")) == (409, "not_a_directory")
    assert problem(await workspace.get("", path="none")) == (404, "not_found")
    assert problem(await workspace.get("", cursor="%%%")) == (400, "bad_cursor")


async def test_a_folder_with_many_files_is_listed_in_pages(workspace: Workspace) -> None:
    many = workspace.root / "many"
    many.mkdir()
    for number in range(20_000):
        (many / f"{number:06}").touch()
    page = (await workspace.get("", path="many", limit=1000)).json()
    assert [each["name"] for each in page["items"]][-1] == "000999"
    page = (await workspace.get("", path="many", limit=1000, cursor=page["next"])).json()
    assert page["items"][0]["name"] == "001000"


async def test_what_git_ignores_is_marked(workspace: Workspace) -> None:
    process = await asyncio.create_subprocess_exec("git", "init", "-q", cwd=workspace.root)
    await process.wait()
    (workspace.root / ".gitignore").write_text("*.log\nbuild/\n")
    (workspace.root / "a.log").write_text("")
    (workspace.root / "a.txt").write_text("")
    (workspace.root / "build").mkdir()
    items = {each["name"]: each for each in await workspace.list()}
    assert {name for name, each in items.items() if each["ignored"]} == {"a.log", "build"}
    assert items[".git"]["protected"]


async def test_a_text_is_viewed_and_edited_as_it_is_written(workspace: Workspace) -> None:
    file = workspace.root / "dos.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    file.chmod(0o754)
    seen = await workspace.get("/text", path="dos.txt")
    told = seen.json()
    assert (told["text"], told["encoding"], told["line_ends"]) == ("one\r\ntwo\r\n", "utf-8-bom", "crlf")
    assert told["mode"] == "754"
    tag = seen.headers["etag"]
    again = await workspace.get("/text", path="dos.txt", headers={"If-None-Match": tag})
    assert again.status_code == 304
    done = await workspace.put("/text", path="dos.txt", json={"text": "one\n2\n"}, headers={"If-Match": tag})
    assert done.status_code == 200, done.text
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"
    assert file.stat().st_mode & 0o777 == 0o754
    late = await workspace.put("/text", path="dos.txt", json={"text": "mine"}, headers={"If-Match": tag})
    assert problem(late) == (412, "changed")
    fresh = done.headers["etag"]
    assert late.json()["details"]["etag"] == fresh
    (workspace.root / "wide.txt").write_text("wide\n", encoding="utf-16")
    tag = (await workspace.get("/text", path="wide.txt")).headers["etag"]
    await workspace.put("/text", path="wide.txt", json={"text": "wider ü\n"}, headers={"If-Match": tag})
    assert (workspace.root / "wide.txt").read_text(encoding="utf-16") == "wider ü\n"


async def test_binaries_images_and_odd_texts_are_told_as_such(workspace: Workspace) -> None:
    root = workspace.root
    (root / "a.bin").write_bytes(b"\0\1\2")
    (root / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    (root / "old.txt").write_bytes(b"caf\xe9\n")
    assert (await workspace.get("/text", path="a.bin")).json()["text"] is None
    assert (await workspace.get("/text", path="a.png")).json()["media"] == "image/png"
    shown = await workspace.get("/content", path="a.png", inline="true")
    assert shown.headers["content-type"] == "image/png"
    assert shown.headers["content-disposition"].startswith("inline; ")
    assert (await workspace.get("/content", path="a.png", version=shown.headers["etag"])).status_code == 200
    assert problem(await workspace.get("/content", path="a.png", version='"another"')) == (412, "changed")
    assert (await workspace.get("/content", path="a.bin", inline="true")).headers["content-disposition"][:6] == "attach"
    assert (await workspace.get("/text", path="old.txt")).json()["encoding"] == "unknown"
    kept = await workspace.put("/text", path="old.txt", json={"text": "café\n"}, overwrite="true")
    assert problem(kept) == (409, "not_text")
    assert (root / "old.txt").read_bytes() == b"caf\xe9\n"
    with (root / "huge.txt").open("wb") as file:
        file.truncate(6_000_000)
        file.write(b"x" * 100_000)
    assert problem(await workspace.get("/text", path="missing")) == (404, "not_found")
    (root / "long.txt").write_text("x" * 5_000_001)
    assert problem(await workspace.get("/text", path="long.txt")) == (413, "too_large")


async def test_a_new_text_is_made_with_its_folders_and_never_over_another(workspace: Workspace) -> None:
    made = await workspace.put("/text", path="new/deep/a.txt", json={"text": "hi\n"}, headers={"If-None-Match": "*"})
    assert made.status_code == 201, made.text
    assert made.json()["created"]
    assert (workspace.root / "new/deep/a.txt").read_text() == "hi\n"
    again = await workspace.put("/text", path="new/deep/a.txt", json={"text": "no"}, headers={"If-None-Match": "*"})
    assert problem(again) == (412, "changed")
    assert problem(await workspace.put("/text", path="new/deep/a.txt", json={"text": "no"})) == (409, "exists")
    gone = await workspace.put("/text", path="gone.txt", json={"text": "no"}, headers={"If-Match": '"x"'})
    assert problem(gone) == (412, "changed")
    assert not (workspace.root / "gone.txt").exists()


async def test_of_many_who_edit_the_same_version_one_wins(workspace: Workspace) -> None:
    (workspace.root / "a.txt").write_text("0")
    tag = (await workspace.get("/text", path="a.txt")).headers["etag"]
    edits = (
        workspace.put("/text", path="a.txt", json={"text": str(n)}, headers={"If-Match": tag}) for n in range(1, 9)
    )
    codes = [each.status_code for each in await asyncio.gather(*edits)]
    assert sorted(codes) == [200, *[412] * 7]
    assert (workspace.root / "a.txt").read_text() == str(codes.index(200) + 1)


async def test_a_download_comes_in_ranges_and_is_never_run(workspace: Workspace) -> None:
    evil = 'x"; filename=evil.html\r\nSet-Cookie: a=b <é>.html'
    (workspace.root / evil).write_text("<script>alert(1)</script>")
    whole = await workspace.get("/content", path=evil, inline="true")
    assert whole.headers["content-type"].startswith("text/plain")
    assert "set-cookie" not in whole.headers
    assert whole.headers["content-disposition"].endswith(f"filename*=UTF-8''{quote(evil, safe='')}")
    plain = await workspace.get("/content", path=evil)
    assert plain.headers["content-type"] == "application/octet-stream"
    assert plain.headers["content-disposition"].startswith("attachment; ")
    assert "sandbox" in plain.headers["content-security-policy"]
    assert plain.headers["x-content-type-options"] == "nosniff"
    (workspace.root / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>")
    assert (
        (await workspace.get("/content", path="a.svg", inline="true")).headers["content-type"].startswith("text/plain")
    )
    (workspace.root / "digits").write_bytes(b"0123456789")
    for given, code, body in (
        ("bytes=2-4", 206, b"234"),
        ("bytes=-3", 206, b"789"),
        ("bytes=7-", 206, b"789"),
        ("bytes=0-99", 206, b"0123456789"),
        ("bytes=1-2,4-5", 200, b"0123456789"),
        ("lines=1-2", 200, b"0123456789"),
    ):
        part = await workspace.get("/content", path="digits", headers={"Range": given})
        assert (part.status_code, part.content) == (code, body), given
    assert part.headers["accept-ranges"] == "bytes"
    assert problem(await workspace.get("/content", path="digits", headers={"Range": "bytes=10-"})) == (416, "bad_range")
    other = await workspace.get("/content", path="digits", headers={"Range": "bytes=0-1", "If-Range": '"old"'})
    assert other.status_code == 200
    (workspace.root / "empty").touch()
    assert (await workspace.get("/content", path="empty")).content == b""


async def test_files_are_renamed_moved_copied_and_not_over_others(workspace: Workspace) -> None:
    root = workspace.root
    (root / "a.txt").write_text("a")
    (root / "b.txt").write_text("b")
    assert (await workspace.post("/files/folder", path="sub/deep")).status_code == 201
    assert problem(await workspace.post("/files/folder", path="sub/deep")) == (409, "exists")
    assert (await workspace.post("/files/move", path="a.txt", to="sub/deep/c.txt")).json()["path"] == "sub/deep/c.txt"
    assert problem(await workspace.post("/files/move", path="b.txt", to="sub/deep/c.txt")) == (409, "exists")
    inside = await workspace.post("/files/move", path="sub", to="sub/deep/more")
    assert problem(inside) == (400, "bad_path")
    assert inside.json()["detail"] == "sub cannot go to sub/deep/more: that is itself, or lies inside it."
    (root / "sub" / "link").symlink_to("/etc/passwd")
    copied = await workspace.post("/files/copy", path="sub", to="copy")
    assert copied.status_code == 201, copied.text
    assert (root / "copy/deep/c.txt").read_text() == "a"
    assert (root / "copy/link").is_symlink()
    done = await workspace.post("/files/move", path="b.txt", to="sub/deep/c.txt", overwrite=True)
    assert done.status_code == 200, done.text
    assert (root / "sub/deep/c.txt").read_text() == "b"
    kept = (await workspace.served.client.get(f"{workspace.url}/trash")).json()["items"]
    assert [each["path"] for each in kept] == ["sub/deep/c.txt"]
    assert problem(await workspace.post("/files/move", path="none", to="x")) == (404, "not_found")


async def test_what_is_deleted_is_in_the_trash_and_comes_back(workspace: Workspace) -> None:
    root = workspace.root
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("a")
    (root / "sub" / "a.txt").chmod(0o640)
    first = (await workspace.delete("sub")).json()
    assert not (root / "sub").exists()
    trash = f"{workspace.url}/trash"
    assert [each["id"] for each in (await workspace.served.client.get(trash)).json()["items"]] == [first["id"]]
    assert first["by"] == "tests"
    (root / "sub").write_text("in the way")
    assert problem(await workspace.post(f"/trash/{first['id']}/restore")) == (409, "exists")
    back = await workspace.post(f"/trash/{first['id']}/restore", to="again/sub")
    assert back.status_code == 200, back.text
    assert (root / "again/sub/a.txt").stat().st_mode & 0o777 == 0o640
    second = (await workspace.delete("sub")).json()
    assert (await workspace.served.client.delete(f"{trash}/{second['id']}")).status_code == 204
    assert (await workspace.served.client.get(trash)).json()["items"] == []
    assert problem(await workspace.post(f"/trash/{second['id']}/restore")) == (404, "not_found")
    assert (await workspace.post("/trash/..%2F..%2Fx/restore")).status_code == 404
    assert problem(await workspace.post("/trash/..%00/restore")) == (404, "not_found")
    assert problem(await workspace.delete("sub")) == (404, "not_found")
    tag = (await workspace.get("/text", path="again/sub/a.txt")).headers["etag"]
    (root / "again/sub/a.txt").write_text("changed")
    assert problem(await workspace.delete("again/sub/a.txt", **{"If-Match": tag})) == (412, "changed")


async def test_a_folder_comes_as_a_zip_without_links_and_secrets(workspace: Workspace) -> None:
    root = workspace.root
    (root / "sub" / ".git").mkdir(parents=True)
    (root / "sub" / ".git" / "config").write_text("[core]")
    (root / "sub" / "a.txt").write_text("a" * 300_000)
    (root / "sub" / ".env").write_text("KEY=1")
    (root / "sub" / "out").symlink_to("/etc/passwd")
    os.mkfifo(root / "sub" / "pipe")
    answer = await workspace.get("/archive", path="sub")
    assert answer.headers["content-disposition"].startswith('attachment; filename="sub.zip"')
    packed = zipfile.ZipFile(io.BytesIO(answer.content))
    assert packed.testzip() is None
    assert packed.namelist() == ["a.txt"]
    assert packed.read("a.txt") == b"a" * 300_000
    assert answer.headers["x-left-out"] == "4"
    assert problem(await workspace.get("/archive", path="sub/a.txt")) == (409, "not_a_directory")


async def test_a_file_on_another_disk_is_deleted_and_comes_back(served: Served) -> None:
    if not _apart(MEMORY, served.sylph.home):
        pytest.skip("there is one disk only")
    with TemporaryDirectory(dir=MEMORY) as disk:
        workspace = await Workspace.added(served, Path(disk, "own"))
        (workspace.root / "sub" / "inner").mkdir(parents=True)
        (workspace.root / "sub" / "inner" / "a.sh").write_text("a")
        (workspace.root / "sub" / "inner" / "a.sh").chmod(0o755)
        (workspace.root / "sub" / "link").symlink_to("inner/a.sh")
        gone = (await workspace.delete("sub")).json()
        assert not (workspace.root / "sub").exists()
        assert (await workspace.post(f"/trash/{gone['id']}/restore")).status_code == 200
        assert (workspace.root / "sub" / "link").read_text() == "a"
        assert (workspace.root / "sub" / "inner" / "a.sh").stat().st_mode & 0o777 == 0o755


def _apart(one: Path, other: Path) -> bool:
    return one.is_dir() and one.stat().st_dev != other.stat().st_dev


async def test_names_and_contents_are_searched(workspace: Workspace) -> None:
    root = workspace.root
    (root / "src").mkdir()
    (root / "src" / "Main.py").write_text("one\ndef find_me():\n")
    (root / ".env").write_text("find_me=secret\n")
    found = (await workspace.get("/search", q="main")).json()
    assert [each["path"] for each in found["items"]] == ["src/Main.py"]
    assert [each["path"] for each in (await workspace.get("/search", q="*.py", path="src")).json()["items"]] == [
        "src/Main.py"
    ]
    lines = (await workspace.get("/search", q="find_m.", by="content")).json()["items"]
    assert lines == [{"path": "src/Main.py", "line": 2, "text": "def find_me():"}]
    assert problem(await workspace.get("/search", q="(", by="content"))[1] == "bad_pattern"
    assert (await workspace.get("/search", q="", by="content")).status_code == 422


async def test_workspaces_are_known_by_a_stable_id_and_added_by_an_admin(served: Served, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    worked = tmp_path / "worked"
    worked.mkdir()
    added = await served.client.post("/api/v1/workspaces", json={"path": str(other)})
    assert added.status_code == 201, added.text
    await served.session(model="openai/scripted", workspace=str(worked))
    listed = {each["path"]: each for each in (await served.client.get("/api/v1/workspaces")).json()["items"]}
    assert [listed[str(each)]["origin"] for each in (other, worked)] == ["added", "session"]
    one = listed[str(other)]["id"]
    assert (await served.client.get(f"/api/v1/workspaces/{one}")).json()["name"] == "other"
    assert (await served.client.delete(f"/api/v1/workspaces/{one}")).status_code == 204
    assert problem(await served.client.get(f"/api/v1/workspaces/{one}/files")) == (404, "not_found")
    own = listed[str(served.sylph.workspace)]["id"]
    assert problem(await served.client.delete(f"/api/v1/workspaces/{own}")) == (409, "wrong_state")
    for path, kind in (
        (str(served.sylph.home / "sylph"), "protected_path"),
        ("relative", "bad_path"),
        (str(tmp_path / "none"), "bad_path"),
        ("/etc/passwd", "not_a_directory"),
    ):
        refused = await served.client.post("/api/v1/workspaces", json={"path": path})
        assert problem(refused)[1] == kind, path
