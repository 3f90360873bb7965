"""The scripted model server is what most tests stand on, so it is tested itself."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from tests.model_server import Asked, ModelServer, Step, assert_extends, begin, call, fail, say

SERVER = Path(__file__).with_name("model_server")
DIRECT = build_opener(ProxyHandler({}))


def post(url: str, *users: str, stream: bool = False) -> bytes:
    body = json.dumps({"stream": stream, "messages": [{"role": "user", "content": text} for text in users]})
    with DIRECT.open(f"{url}/chat/completions", body.encode()) as response:
        return response.read()


async def ask(server: ModelServer, *users: str) -> str:
    said: dict[str, Any] = json.loads(await asyncio.to_thread(post, server.url, *users))
    return said["choices"][0]["message"]["content"]


async def test_steps_are_taken_in_order() -> None:
    async with ModelServer([say("one"), say("two")]) as server:
        assert [await ask(server, "a"), await ask(server, "b")] == ["one", "two"]
        assert [asked.users for asked in server.requests] == [["a"], ["b"]]


async def test_a_request_beyond_the_script_is_refused() -> None:
    async with ModelServer([]) as server:
        with pytest.raises(HTTPError, match="400"):
            await ask(server, "a")


async def test_a_loop_begins_anew() -> None:
    async with ModelServer([say("one"), say("two")], loop=True) as server:
        assert [await ask(server, "x") for _ in range(3)] == ["one", "two", "one"]


async def test_sessions_are_told_apart_by_what_the_user_said_last() -> None:
    async with ModelServer({"cats": [say("meow"), say("purr")], "dogs": [say("woof")]}) as server:
        assert await ask(server, "about cats") == "meow"
        assert await ask(server, "about cats", "then dogs", "a note") == "woof"
        assert await ask(server, "about cats", "a note") == "purr"
        with pytest.raises(HTTPError, match="400"):
            await ask(server, "about birds")


async def test_a_function_can_be_a_script() -> None:
    def echo(asked: Asked) -> Step:
        return say(asked.users[0].upper())

    async with ModelServer(echo) as server:
        assert await ask(server, "hello") == "HELLO"


async def test_another_path_is_not_found() -> None:
    async with ModelServer() as server:
        with pytest.raises(HTTPError, match="404"):
            await asyncio.to_thread(post, server.url + "/other", "a")


def test_a_prefix_that_changes_is_noticed() -> None:
    one, two = (Asked("POST", "/", {}, body) for body in (b'{"m":[1]}', b'{"m":[2,3]}'))
    with pytest.raises(AssertionError, match="after 6 bytes"):
        assert_extends([one, two])


@pytest.mark.parametrize("script", [[{"text": "Hello"}], {"hi": [{"calls": [["read", {"path": "a"}]]}]}], ids=str)
async def test_it_runs_as_a_process(tmp_path: Path, script: object) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(script))
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, "--script", file, "--loop", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    said = json.loads(await asyncio.to_thread(post, url, "hi"))
    assert said["choices"][0]["finish_reason"] in ("stop", "tool_calls")
    process.terminate()
    await process.wait()


def test_the_one_liners_make_steps() -> None:
    assert call("read", path="a", how={"ids": False}) == Step(calls=(("read", {"path": "a"}),), ids=False)
    assert fail(429, "Slow", headers={"retry-after": "1"}).headers["retry-after"] == "1"


async def test_a_held_answer_waits_until_it_is_let_go() -> None:
    gate = asyncio.Event()
    async with ModelServer([say("at last", hold=gate)]) as server:
        asking = asyncio.create_task(ask(server, "a"))
        await server.until(lambda: bool(server.requests))
        done, _ = await asyncio.wait({asking}, timeout=0.2)
        assert not done
        gate.set()
        assert await asking == "at last"


async def test_one_that_only_begins_says_half_of_it_and_no_more() -> None:
    async with ModelServer([begin("one two three four five six")]) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.root.rpartition(":")[2]))
        body = b'{"stream": true, "messages": []}'
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        got = await reader.readuntil(b"two")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                got += await reader.read()
        assert b"six" not in got
        writer.close()
