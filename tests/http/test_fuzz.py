"""The whole API, asked by schemathesis for all that its schema allows and much that it does not: no server error."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest
from tests.http.as_model import talking

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Streams that do not end by themselves have tests of their own.
ENDLESS = r"/events$|/stream$|/follow$"
SECONDS = 75


@pytest.mark.timeout(180)
async def test_no_request_makes_the_server_fail(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        # What is logged out or revoked on the way must not be what it asks with.
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{talk.served.url}/openapi.json",
            "-H", f"Authorization: Bearer {talk.served.token}",
            "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", "2", "--workers", "2",
            "--seed", "6", "--no-shrink", "--exclude-path-regex", ENDLESS, "--request-timeout", "20",
            "--continue-on-failure", "--warnings", "off", "--suppress-health-check", "all", "--no-color",
            stdout=PIPE, stderr=STDOUT, cwd=tmp_path, env={**os.environ, "NO_PROXY": "*"},
        )  # fmt: skip
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        assert talk.served.process.returncode is None
