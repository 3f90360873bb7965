"""What nobody gets at through the files of a workspace, whoever asks and however."""

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from tests.http.served import Served
from tests.http.sharing import sharing
from tests.http.workspace import Workspace, problem

SECRET = "a-secret-of-the-machine"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with sharing(tmp_path_factory.mktemp("served"), []) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def workspace(served: Served, tmp_path: Path) -> Workspace:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    return await Workspace.added(served, tmp_path / "work")


async def everything(workspace: Workspace, path: str) -> list[tuple[int, str]]:
    """What each way to a file says of one path."""
    ways = [
        await workspace.get("/text", path=path),
        await workspace.get("/content", path=path),
        await workspace.put("/text", path=path, json={"text": "x"}, overwrite="true"),
        await workspace.put("/content", path=path, content=b"x", overwrite="true"),
        await workspace.delete(path),
        await workspace.post("/files/move", path=path, to="taken.txt"),
        await workspace.post("/files/copy", path=path, to="taken.txt"),
    ]
    assert not any(SECRET in way.text for way in ways)
    assert "taken.txt" not in [each.name for each in workspace.root.iterdir()]
    return [problem(way) for way in ways]


@pytest.mark.parametrize(
    "path",
    ["../outside/secret.txt", "sub/../../outside/secret.txt", "/etc/passwd", "a/../../work/../outside/secret.txt"],
)
async def test_no_path_leads_out(workspace: Workspace, path: str) -> None:
    assert set(await everything(workspace, path)) == {(403, "outside_workspace")}
    assert problem(await workspace.get("", path=path)) == (403, "outside_workspace")
    encoded = f"{workspace.url}/files/content?path=" + path.replace("/", "%2F").replace(".", "%2E")
    assert problem(await workspace.served.client.get(encoded)) == (403, "outside_workspace")
    twice = encoded.replace("%", "%25")
    assert (await workspace.served.client.get(twice)).status_code == 404


async def test_paths_that_are_none_are_refused(workspace: Workspace) -> None:
    assert problem(await workspace.get("/text", path="a\0b")) == (400, "bad_parameter")
    assert problem(await workspace.get("/text", path="base64:!!")) == (400, "bad_path")
    assert problem(await workspace.get("/text", path="base64:Li4vb3V0c2lkZQ==")) == (403, "outside_workspace")
    assert problem(await workspace.put("/content", path="x" * 300, content=b"")) == (400, "name_too_long")
    assert problem(await workspace.put("/content", path="x/" * 3000 + "y", content=b"")) == (400, "name_too_long")
    assert problem(await workspace.get("/text", path="x" * 9000)) == (422, "bad_parameter")
    assert problem(await workspace.delete("sub/..")) == (403, "outside_workspace")
    assert problem(await workspace.delete(".")) == (400, "bad_path")


async def test_links_lead_nowhere_else(workspace: Workspace, tmp_path: Path) -> None:
    root, outside = workspace.root, tmp_path / "outside"
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "folder").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "not-yet.txt")
    (root / "loop").symlink_to("loop")
    for path in ("file", "folder/secret.txt", "folder/new.txt", "dangling"):
        got = [
            await workspace.get("/text", path=path),
            await workspace.get("/content", path=path),
            await workspace.put("/text", path=path, json={"text": "x"}, overwrite="true"),
            await workspace.put("/content", path=path, content=b"x", overwrite="true"),
        ]
        assert {problem(each) for each in got} == {(403, "outside_workspace")}, path
    assert problem(await workspace.get("", path="folder")) == (403, "outside_workspace")
    assert problem(await workspace.post("/files/move", path="folder/secret.txt", to="x")) == (403, "outside_workspace")
    assert problem(await workspace.get("/text", path="loop"))[0] == 409
    assert problem(await workspace.put("/content", path="loop/x", content=b""))[0] == 409
    assert sorted(each.name for each in outside.iterdir()) == ["secret.txt"]
    # The link itself is the workspace's own.
    assert (await workspace.delete("folder")).status_code == 200
    assert (outside / "secret.txt").read_text() == SECRET


async def test_secrets_git_and_sylph_itself_stay_closed(workspace: Workspace) -> None:
    root = workspace.root
    for path in (".env", "id_rsa", ".git/config", "sub/.GIT/HEAD", ".aws/credentials", "deploy.pem"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(SECRET)
        assert set(await everything(workspace, path)) == {(403, "protected_path")}, path
        assert (root / path).read_text() == SECRET
    assert {each["name"] for each in await workspace.list() if each["protected"]} >= {".env", ".git", "id_rsa"}
    (root / "link").symlink_to(".env")
    assert problem(await workspace.get("/content", path="link")) == (403, "protected_path")
    assert problem(await workspace.put("/text", path=".sylph/rules", json={"text": "x"})) == (403, "protected_path")
    (root / "a.txt").write_text("a")
    assert problem(await workspace.post("/files/move", path="a.txt", to=".git/hooks/post-commit"))[0] == 403
    assert problem(await workspace.post("/files/copy", path="a.txt", to="sub/.git/config")) == (403, "protected_path")


async def test_no_other_name_opens_what_is_protected(workspace: Workspace) -> None:
    hidden = workspace.root / "x" / ".config" / "gh"
    hidden.mkdir(parents=True)
    (hidden / "hosts.yml").write_text(SECRET)
    assert problem(await workspace.get("/text", path="x/.config/gh/hosts.yml")) == (403, "protected_path")
    assert problem(await workspace.post("/files/move", path="x/.config", to="x/open")) == (403, "protected_path")
    assert problem(await workspace.post("/files/copy", path="x/.config", to="x/open")) == (403, "protected_path")
    kept = (await workspace.delete("x/.config")).json()["id"]
    assert problem(await workspace.post(f"/trash/{kept}/restore", to="x/open")) == (403, "protected_path")
    assert (await workspace.post(f"/trash/{kept}/restore")).status_code == 200
    assert (hidden / "hosts.yml").read_text() == SECRET


async def test_sylphs_own_home_is_not_moved_with_the_folder_it_is_in(served: Served) -> None:
    added = await served.client.post("/api/v1/workspaces", json={"path": str(served.sylph.home.parent)})
    workspace = Workspace(served, added.json()["id"], served.sylph.home.parent)
    assert problem(await workspace.delete("home")) == (403, "protected_path")
    assert problem(await workspace.post("/files/move", path="home", to="house")) == (403, "protected_path")
    assert problem(await workspace.get("/text", path="home/sylph/config.toml")) == (403, "protected_path")
    assert problem(await workspace.get("", path="home/sylph")) == (403, "protected_path")


async def test_special_files_are_refused_at_once(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(workspace.root)
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
    # Whoever opened the pipe would wait for somebody at its other end, for ever.
    for path in ("pipe", "socket"):
        assert problem(await workspace.get("/text", path=path)) == (409, "not_a_file")
        assert problem(await workspace.get("/content", path=path)) == (409, "not_a_file")
        refused = await workspace.put("/content", path=path, content=b"x", overwrite="true")
        assert problem(refused) == (409, "not_a_file")
        assert problem(await workspace.post("/files/copy", path=path, to="copy")) == (409, "not_a_file")


async def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(workspace: Workspace, tmp_path: Path) -> None:
    """Somebody turns a folder into a link and back as fast as they can; whatever is read or written is inside."""
    root, outside = workspace.root, tmp_path / "outside"
    (root / "real").mkdir()
    (root / "real" / "secret.txt").write_text("harmless")
    (root / "swap").mkdir()
    (root / "swap" / "secret.txt").write_text("harmless")
    over = threading.Event()

    def swap() -> None:
        here, spare = root / "swap", root / "spare"
        while not over.is_set():
            here.rename(spare)
            # An upload may have made the folder anew, as it was missing.
            with suppress(FileExistsError):
                here.symlink_to(outside)
            shutil.rmtree(here) if not here.is_symlink() else here.unlink()
            with suppress(OSError):
                spare.rename(here)
            if spare.exists():
                shutil.rmtree(here, ignore_errors=True)
                spare.rename(here)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(50):
            answers = await asyncio.gather(
                workspace.get("/content", path="swap/secret.txt"),
                workspace.put("/content", path=f"swap/new{number}", content=b"x"),
                workspace.put("/text", path="swap/secret.txt", json={"text": "over"}, overwrite="true"),
            )
            assert all(each.status_code < 500 for each in answers), [each.text for each in answers]
            assert SECRET not in answers[0].text
    finally:
        over.set()
        thread.join()
    assert {each.name: each.read_text() for each in outside.iterdir()} == {"secret.txt": SECRET}


async def test_who_may_only_read_writes_nothing(served: Served, workspace: Workspace) -> None:
    made = await served.sylph.run("token", "create", "reader", "--scope", "read", "--json")
    reading = {"Authorization": f"Bearer {made.json['token']}"}
    (workspace.root / "a.txt").write_text("a")
    assert (await workspace.get("/text", path="a.txt", headers=reading)).status_code == 200
    refused = await workspace.put("/text", path="a.txt", json={"text": "b"}, overwrite="true", headers=reading)
    assert problem(refused) == (403, "forbidden")
    assert problem(await workspace.delete("a.txt", **reading)) == (403, "forbidden")
    added = await served.client.post("/api/v1/workspaces", json={"path": "/"}, headers=reading)
    assert problem(added) == (403, "forbidden")
    assert (workspace.root / "a.txt").read_text() == "a"
    assert problem(await served.bare.get(f"{workspace.url}/files")) == (401, "unauthorized")


async def test_a_workspace_that_is_gone_is_told(served: Served, workspace: Workspace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    added = (await served.client.post("/api/v1/workspaces", json={"path": str(other)})).json()
    shutil.rmtree(other)
    gone = await served.client.get(f"/api/v1/workspaces/{added['id']}/files")
    assert problem(gone) == (404, "not_found")
