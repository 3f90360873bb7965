"""One server for many tests, one after the other: each finds it as if nobody had been there before."""

import asyncio
import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.flows.conftest import unexplained
from tests.flows.program import Sylph
from tests.http.served import Served, serving
from tests.model_server import ModelServer
from tests.patience import PATIENCE

API = "/api/v1"
# Configuration, identity, their earlier versions, and the keys of providers: what every session sees.
LASTING = ("*.toml", "*.md", "data/history/**/*", "data/vault*")


@dataclass
class Shared:
    """`places` names a folder that nobody has used yet."""

    places: Callable[[], Path]
    served: Served = field(init=False)
    model: ModelServer = field(init=False)

    async def begin(self) -> None:
        sylph = furnished(self.places())
        async with AsyncExitStack() as stack:
            self.model = await stack.enter_async_context(ModelServer())
            sylph.environ.update(OPENAI_BASE_URL=self.model.url, OPENAI_API_KEY="a-key-for-tests")
            self.served = await stack.enter_async_context(serving(sylph))
            self._end = stack.pop_all().aclose
        self._lasting = lasting(sylph.home / "sylph")

    async def end(self) -> None:
        await self._end()

    async def clear(self) -> list[str]:
        """Takes away what a test left; tells what should not be there, and is renewed then."""
        if wrong := await self._cleared():
            await self.end()
            await self.begin()
        return wrong

    async def _cleared(self) -> list[str]:
        home = self.served.sylph.home / "sylph"
        wrong = [f"The prompt of {id} did not grow at its end: {what}." for id, what in unexplained(home / STORE)]
        if (left := lasting(home)) != self._lasting:
            wrong.append(f"It changed what all tests see; mark it `alone`: {left}")
        async with asyncio.timeout(PATIENCE):
            for kind in ("", "archived=true", "deleted=true"):
                for row in (await self._get(f"/sessions?limit=200&{kind}"))["items"]:
                    await self._purge(row["id"])
        for key in (await self._get("/keys"))["items"]:
            if key["kind"] != "token" or key["name"] != "tests":
                await self.served.client.delete(f"{API}/keys/{key['id']}")
        for folder in (self.served.sylph.workspace, home / "data" / "trash"):
            await asyncio.to_thread(empty, folder)
        return wrong

    async def _get(self, path: str) -> Any:
        return (await self.served.client.get(API + path)).raise_for_status().json()

    async def _purge(self, id: str) -> None:
        """Also what is at work yet."""
        while (await self.served.client.delete(f"{API}/sessions/{id}?purge=true")).status_code == 409:
            await self.served.client.post(f"{API}/sessions/{id}/cancel", json={})
            await asyncio.sleep(0.02)


STORE = Path("data", "events.db")


def lasting(home: Path) -> dict[str, bytes]:
    found = (path for pattern in LASTING for path in home.glob(pattern) if path.is_file())
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def empty(folder: Path) -> None:
    for each in folder.iterdir() if folder.is_dir() else ():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


def furnished(folder: Path) -> Sylph:
    """A workspace, and a home with nothing configured, which looks for no model server on this machine."""
    workspace, home = folder / "work", folder / "home"
    workspace.mkdir()
    (home / "sylph").mkdir(parents=True, mode=0o700)
    (home / "sylph" / "config.toml").write_text("probe = false\n")
    return Sylph(home, workspace)
