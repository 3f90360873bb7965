"""A workspace as a client of the server sees it."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
from tests.http.served import Served

Response = httpx2.Response


class Workspace:
    """Requests about the files of one workspace; `root` is the folder itself."""

    def __init__(self, served: Served, id: str, root: Path) -> None:
        self.served, self.id, self.root = served, id, root
        self.url = f"/api/v1/workspaces/{id}"

    @classmethod
    async def of(cls, served: Served) -> "Workspace":
        """The folder the server was started in."""
        listed = (await served.client.get("/api/v1/workspaces")).json()["items"]
        own = next(each for each in listed if each["origin"] == "server")
        return cls(served, own["id"], Path(own["path"]))

    @classmethod
    async def added(cls, served: Served, root: Path) -> "Workspace":
        """A new folder, for one test of those that share a server."""
        await asyncio.to_thread(root.mkdir)
        added = await served.client.post("/api/v1/workspaces", json={"path": str(root)})
        assert added.status_code == 201, added.text
        return cls(served, added.json()["id"], root)

    async def list(self, path: str = "", **query: Any) -> list[dict[str, Any]]:
        answer = await self.get("", path=path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    async def get(self, what: str, headers: dict[str, str] | None = None, **query: Any) -> Response:
        return await self.served.client.get(f"{self.url}/files{what}", params=query, headers=headers)

    async def put(self, what: str, headers: dict[str, str] | None = None, **given: Any) -> Response:
        body = {name: given.pop(name) for name in ("json", "content") if name in given}
        return await self.served.client.put(f"{self.url}/files{what}", params=given, headers=headers, **body)

    async def post(self, what: str, **body: Any) -> Response:
        return await self.served.client.post(f"{self.url}{what}", json=body)

    async def delete(self, path: str, **headers: str) -> Response:
        return await self.served.client.delete(f"{self.url}/files", params={"path": path}, headers=headers)


def problem(answer: Response) -> tuple[int, str]:
    """The status and the kind of a refusal, which has its one form."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    told = answer.json()
    assert told["detail"], told
    assert told["next"], told
    assert str(told["status"]) == str(answer.status_code)
    return answer.status_code, told["kind"]
