"""Uploads: straight to the disk, whole or not at all."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from tests.http.served import Served
from tests.http.sharing import sharing
from tests.http.workspace import Workspace, problem
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with sharing(tmp_path_factory.mktemp("served"), [], "[server]\nupload_mb = 3\n") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def workspace(served: Served, tmp_path: Path) -> Workspace:
    return await Workspace.added(served, tmp_path / "own")


def left(root: Path) -> list[str]:
    return sorted(str(each.relative_to(root)) for each in root.rglob("*"))


async def pieces(count: int, size: int = 100_000, pause: float = 0) -> AsyncGenerator[bytes, None]:
    for _ in range(count):
        yield b"x" * size
        await asyncio.sleep(pause)


async def test_a_file_is_uploaded_whole_and_not_over_another(workspace: Workspace) -> None:
    done = await workspace.put("/content", path="new/folder/a.bin", content=pieces(20))
    assert done.status_code == 201, done.text
    assert (workspace.root / "new/folder/a.bin").stat().st_size == done.json()["size"] == 2_000_000
    seen = (await workspace.get("/content", path="new/folder/a.bin")).headers["etag"]
    assert seen == done.headers["etag"]
    assert problem(await workspace.put("/content", path="new/folder/a.bin", content=b"2")) == (409, "exists")
    (workspace.root / "new/folder/a.bin").chmod(0o751)
    over = await workspace.put("/content", path="new/folder/a.bin", content=b"2", overwrite="true")
    assert not over.json()["created"]
    assert (workspace.root / "new/folder/a.bin").read_bytes() == b"2"
    assert (workspace.root / "new/folder/a.bin").stat().st_mode & 0o777 == 0o751
    late = await workspace.put("/content", path="new/folder/a.bin", content=b"3", headers={"If-Match": seen})
    assert problem(late) == (412, "changed")
    assert problem(await workspace.put("/content", path="new", content=b"3", overwrite="true")) == (409, "is_directory")
    assert problem(await workspace.put("/content", path="new/folder/a.bin/b", content=b""))[1] == "not_a_directory"
    assert left(workspace.root) == ["new", "new/folder", "new/folder/a.bin"]


async def test_what_is_too_large_leaves_nothing(workspace: Workspace) -> None:
    told = await workspace.put("/content", path="sub/a.bin", content=b"x" * 3_000_001)
    assert problem(told) == (413, "too_large")
    # Without a length it is known only when it has come.
    counted = await workspace.put("/content", path="sub/a.bin", content=pieces(40))
    assert problem(counted) == (413, "too_large")
    assert left(workspace.root) == []


async def test_a_cut_upload_leaves_nothing_and_the_old_content_stays(workspace: Workspace) -> None:
    (workspace.root / "old.bin").write_bytes(b"old")

    async def cut() -> AsyncGenerator[bytes, None]:
        yield b"x" * 500_000
        await asyncio.sleep(0.3)
        raise ConnectionAbortedError

    for path in ("old.bin", "sub/new.bin"):
        with pytest.raises((ConnectionAbortedError, httpx2.HTTPError)):
            await workspace.put("/content", path=path, content=cut(), overwrite="true")
    await eventually(lambda: left(workspace.root) == ["old.bin"], "nothing but the old file")
    assert (workspace.root / "old.bin").read_bytes() == b"old"


async def test_of_two_uploads_to_a_free_name_one_is_refused(workspace: Workspace) -> None:
    both = await asyncio.gather(
        *(workspace.put("/content", path="a.bin", content=pieces(5, 1000 + each, 0.02)) for each in range(2))
    )
    assert sorted(each.status_code for each in both) == [201, 409]
    won = next(number for number, each in enumerate(both) if each.status_code == 201)
    assert (workspace.root / "a.bin").stat().st_size == 5 * (1000 + won)


async def test_a_slow_upload_holds_nobody_up_and_a_kill_leaves_nothing(workspace: Workspace) -> None:
    """The last one here: it ends the server."""
    begun, killed = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        yield b"x" * 10
        begun.set()
        await killed.wait()
        while True:
            yield b"x" * 10
            await asyncio.sleep(0.02)

    slow = asyncio.create_task(workspace.put("/content", path="slow.bin", content=endless()))
    await begun.wait()
    assert (await workspace.put("/content", path="fast.bin", content=b"x")).status_code == 201
    assert left(workspace.root) == ["fast.bin"]
    workspace.served.kill()
    killed.set()
    with pytest.raises(httpx2.HTTPError):
        await slow
    assert left(workspace.root) == ["fast.bin"]
