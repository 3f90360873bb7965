"""The whole API, asked by schemathesis for what its schema allows and for much that it does not: no server error."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from typing import Any

import pytest
from tests.http.as_model import talking
from tests.http.served import Served

PHASES = "examples,coverage,fuzzing"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Streams do not end by themselves, folders of this machine are not to become workspaces, and what it asks with is not
# to be revoked. Each of these has tests of its own.
SPARED = {"stream_session_events", "stream_events", "add_workspace", "revoke_token"}


def asked(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what is spared."""
    names = {each["operationId"] for path in document["paths"].values() for each in path.values()}
    assert names >= SPARED
    kept = {
        path: {method: each for method, each in operations.items() if each["operationId"] not in SPARED}
        for path, operations in document["paths"].items()
    }
    for each in (each for path in kept.values() for each in path.values() if "requestBody" in each):
        # Lines of JSON are bytes to it.
        content = each["requestBody"]["content"]
        each["requestBody"]["content"] = {kind.replace("x-ndjson", "octet-stream"): content[kind] for kind in content}
    return {**document, "paths": {path: operations for path, operations in kept.items() if operations}}


@pytest.mark.lengthy
async def test_no_request_makes_the_server_fail(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        document = tmp_path / "openapi.json"
        document.write_text(json.dumps(asked((await talk.served.client.get("/openapi.json")).json())))
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("schemathesis")), "run", str(document), "--url", talk.served.url,
            "-H", f"Authorization: Bearer {talk.served.token}", "--checks", CHECKS, "--phases", PHASES,
            "--max-examples", "3", "--workers", "2", "--seed", "6", "--no-shrink", "--request-timeout", "120",
            "--continue-on-failure", "--warnings", "off", "--suppress-health-check", "all", "--no-color",
            stdout=PIPE, stderr=STDOUT, cwd=tmp_path, env={**os.environ, "NO_PROXY": "*"},
        )  # fmt: skip
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        assert (await talk.served.client.get("/api/v1/status")).status_code == 200


async def test_a_nul_in_a_name_is_the_askers_mistake(served: Served) -> None:
    refused = await served.client.get("/api/v1/policy", params={"workspace": "a\0b"})
    assert (refused.status_code, refused.json()["kind"]) == (400, "bad_parameter")
