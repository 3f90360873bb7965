"""Requests with a key, repeated: by the client, by two at once, and after the server was killed."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from tests.http.acting import Client, acting
from tests.http.served import serving

from sylph.core.errors import StoreError
from sylph.interfaces.http.kit.idempotency import IdempotencyStore, IdempotentRequest
from sylph.interfaces.http.kit.problem_details import AccessDenied

KEY = {"Idempotency-Key": "the-same"}
MAKING: dict[str, dict[str, Any]] = {
    "/sessions": {"title": "Once", "label": "once"},
    "/tasks": {"text": "hello", "label": "once"},
}


async def test_a_repeated_request_makes_nothing_new_even_after_a_kill(tmp_path: Path) -> None:
    async with acting(tmp_path) as served:
        api = Client(served)
        made = {path: await api.post(path, body, **KEY) for path, body in MAKING.items()}
        await api.done(made["/tasks"]["session"])
        origin = made["/sessions"]["id"]
        forked = await api.post(f"/sessions/{origin}/fork", {}, **KEY)
        for path, body in MAKING.items():
            again = await api.ask("POST", path, body, **KEY)
            assert again.headers["idempotency-replayed"] == "true"
            assert (again.status_code, again.json()["id"]) == (201, made[path]["id"])
            other = await api.refused("POST", path, 422, {**body, "title": "Another"}, **KEY)
            assert other["kind"] == "key_reused"
        served.kill()
        await served.process.wait()
        unanswered(served.sylph.home / "sylph" / "data" / "requests.db")
        async with serving(served.sylph) as anew:
            api = Client(anew)
            # Another token is another caller: the owner's old one is still good.
            old = {"Authorization": f"Bearer {served.token}"}
            for path, body in MAKING.items():
                again = await api.ask("POST", path, body, **KEY, **old)
                assert (again.status_code, again.json()["id"]) == (201, made[path]["id"]), again.text
            same = await api.ask("POST", f"/sessions/{origin}/fork", {}, **KEY, **old)
            assert same.json()["id"] == forked["id"]
            assert len((await api.get("/sessions"))["items"]) == 3
            assert (await api.get(f"/sessions/{made['/tasks']['session']}"))["turns"] == 1
            apart = await api.post("/sessions", MAKING["/sessions"], **KEY)
            assert apart["id"] != origin


def unanswered(path: Path) -> None:
    """As if the server had been killed between what it did and its answer."""
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        assert base.execute("update request set status = null, body = null").rowcount == 3


async def test_one_that_is_being_worked_on_is_not_begun_again(tmp_path: Path) -> None:
    once, asked = IdempotencyStore(tmp_path / "requests.db"), IdempotentRequest(b"name", b"print")
    go, done = asyncio.Event(), list[str]()

    async def work() -> Response:
        await go.wait()
        done.append(asked.resource_id)
        return Response(b"{}", 201)

    first = asyncio.create_task(once.run_once(asked, work))
    await asyncio.sleep(0)
    with pytest.raises(AccessDenied) as caught:
        await once.run_once(asked, work)
    assert caught.value.trouble.kind == "in_progress"
    go.set()
    assert (await first).status_code == 201
    assert (await once.run_once(asked, work)).headers["idempotency-replayed"] == "true"
    assert done == [asked.resource_id]
    once.close()


async def test_what_failed_may_be_tried_again(tmp_path: Path) -> None:
    once, asked = IdempotencyStore(tmp_path / "requests.db"), IdempotentRequest(b"name", b"print")

    async def fail() -> Response:
        raise AccessDenied("Not now.")

    async def work() -> Response:
        return Response(b"{}", 201)

    with pytest.raises(AccessDenied):
        await once.run_once(asked, fail)
    assert "idempotency-replayed" not in (await once.run_once(asked, work)).headers
    once.close()


async def test_a_store_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "requests.db").write_bytes(b"no database at all, but long enough to be taken for one" * 20)
    once = IdempotencyStore(tmp_path / "requests.db")

    async def work() -> Response:
        raise AssertionError("nothing is done that could not be found again")

    with pytest.raises(StoreError):
        await once.run_once(IdempotentRequest(b"name", b"print"), work)
    once.close()
