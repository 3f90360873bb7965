"""Which folders of the machine a credential opens: those the owner or an admin chose, and no others."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.http.acting import API, Client
from tests.http.workspace import problem
from tests.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")
HELLO = [{"role": "user", "content": "hello"}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def weak(api: Client) -> AsyncGenerator[httpx2.AsyncClient, None]:
    """Somebody who may look and chat, and approve: all but administer."""
    key = await api.post("/keys", {"name": "guest", "scopes": ["read", "chat", "approve"]})
    bearer = {"Authorization": f"Bearer {key['token']}"}
    async with httpx2.AsyncClient(base_url=api.served.url, headers=bearer, trust_env=False, timeout=PATIENCE) as client:
        yield client


async def known(client: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    return {each["path"]: each for each in (await client.get(f"{API}/workspaces")).json()["items"]}


@pytest.mark.parametrize("folder", ["/", "/etc", "/nowhere", "HOME", "BESIDE"])
async def test_a_folder_that_nobody_opened_is_not_opened_by_a_session(
    api: Client, weak: httpx2.AsyncClient, folder: str
) -> None:
    sylph = api.served.sylph
    path = {"HOME": str(sylph.home), "BESIDE": str(sylph.workspace.parent)}.get(folder, folder)
    before = await known(api.served.client)
    for where, body in (("sessions", {}), ("tasks", {"text": "hello"})):
        refused = await weak.post(f"{API}/{where}", json={"workspace": path, **body})
        assert problem(refused) == (403, "forbidden"), refused.text
        assert refused.json()["details"] == {"scope": "admin"}
    for what in ("policy", "tools", "tools/read"):
        refused = await weak.get(f"{API}/{what}", params={"workspace": path})
        assert problem(refused) == (403, "forbidden"), refused.text
    asked = {"model": "sylph", "messages": HELLO, "metadata": {"workspace": path}}
    answer = await weak.post("/v1/chat/completions", json=asked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert await known(api.served.client) == before


async def test_a_folder_inside_of_a_workspace_may_be_named(api: Client, weak: httpx2.AsyncClient) -> None:
    root = api.served.sylph.workspace
    (root / "part").mkdir()
    (root / "way-out").symlink_to("/etc")
    for folder in (root, root / "part"):
        made = await weak.post(f"{API}/sessions", json={"workspace": str(folder)})
        assert made.status_code == 201, made.text
        for what in ("policy", "tools", "tools/read"):
            assert (await weak.get(f"{API}/{what}", params={"workspace": str(folder)})).status_code == 200
    assert (await known(weak))[str(root / "part")]["origin"] == "session"
    for way in ("way-out", "part/../../home"):
        refused = await weak.post(f"{API}/sessions", json={"workspace": str(root / way)})
        assert problem(refused) == (403, "forbidden")


async def test_what_an_admin_works_in_is_open_to_others(api: Client, weak: httpx2.AsyncClient, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    (chosen / "inner").mkdir(parents=True)
    await api.post("/sessions", {"workspace": str(chosen)})
    made = await weak.post(f"{API}/sessions", json={"workspace": str(chosen / "inner")})
    assert made.status_code == 201, made.text
    assert {str(chosen), str(chosen / "inner")} <= set(await known(weak))


async def test_a_session_of_somebody_weaker_opens_nothing_once_its_workspace_is_closed(
    api: Client, weak: httpx2.AsyncClient, tmp_path: Path
) -> None:
    """The check counts when files are asked for, not only when the session was made."""
    shared = tmp_path / "shared"
    (shared / "inner").mkdir(parents=True)
    (shared / "inner" / "notes.txt").write_text("notes")
    added = await api.post("/workspaces", {"path": str(shared)})
    await weak.post(f"{API}/sessions", json={"workspace": str(shared / "inner")})
    inner = (await known(weak))[str(shared / "inner")]["id"]
    file = f"{API}/workspaces/{inner}/files/text?path=notes.txt"
    assert (await weak.get(file)).json()["text"] == "notes"
    await api.ask("DELETE", f"/workspaces/{added['id']}")
    assert problem(await weak.get(file)) == (404, "not_found")
    assert str(shared / "inner") not in await known(weak)


async def test_a_link_in_the_place_of_a_sessions_folder_leads_nowhere(
    api: Client, weak: httpx2.AsyncClient, tmp_path: Path
) -> None:
    moved = api.served.sylph.workspace / "moved"
    moved.mkdir()
    await weak.post(f"{API}/sessions", json={"workspace": str(moved)})
    moved.rmdir()
    moved.symlink_to("/usr")
    assert not {"/usr", str(moved)} & set(await known(weak))


async def test_the_home_and_the_root_are_opened_by_an_admin_only_when_added(
    api: Client, weak: httpx2.AsyncClient
) -> None:
    home = str(api.served.sylph.home)
    for folder in ("/", home):
        await api.post("/sessions", {"workspace": folder})
    assert not {"/", home} & set(await known(weak))
    assert problem(await weak.post(f"{API}/sessions", json={"workspace": home})) == (403, "forbidden")


async def test_sylphs_own_places_are_no_workspace_for_anybody(api: Client, weak: httpx2.AsyncClient) -> None:
    own = str(api.served.sylph.home / "sylph")
    for client in (weak, api.served.client):
        assert problem(await client.post(f"{API}/sessions", json={"workspace": own})) == (403, "protected_path")


async def test_what_the_command_line_works_in_is_open(api: Client, weak: httpx2.AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "terminal").mkdir()
    said = await api.served.sylph.run("--cwd", str(tmp_path / "terminal"), "hello")
    assert said.code == 0, said
    assert (await known(weak))[str(tmp_path / "terminal")]["origin"] == "session"
