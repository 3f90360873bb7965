"""Work on the browser app: it is served with hot reload, and talks to a server that runs."""

import asyncio
import os
import re
import sys
from pathlib import Path

import httpx2
import pytest
from tests.http.served import Served
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent
LOCAL = re.compile(r"http://127\.0\.0\.1:\d+")

pytestmark = pytest.mark.skipif(
    not (ROOT / "web" / "node_modules" / "vite").is_dir(), reason="the packages of the app are not installed"
)


async def test_one_command_serves_it_beside_a_running_server(served: Served) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "web/build.py", "dev", "--port", "0",
        cwd=ROOT, env={**os.environ, "SYLPH_URL": served.url, "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout
        said = ""
        async with asyncio.timeout(PATIENCE):
            while not (found := LOCAL.search(said)):
                line = await process.stdout.readline()
                assert line, said
                said += line.decode()
        async with httpx2.AsyncClient(base_url=found[0], timeout=PATIENCE) as client:
            assert "/@vite/client" in (await client.get("/")).text
            assert (await client.get("/api/v1/health/live")).status_code == 200
            assert (await client.get("/api/v1/sessions")).status_code == 401
            mine = {"authorization": f"Bearer {served.token}"}
            made = await client.post("/api/v1/sessions", json={"title": "from the workshop"}, headers=mine)
            assert made.status_code == 201, made.text
    finally:
        os.killpg(process.pid, 15)
        await process.communicate()
