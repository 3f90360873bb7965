import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.net.servers import OK, Handler, keeping, saying, serving
from tests.patience import PATIENCE

from sylph.net.address_guard import AddressGuard
from sylph.net.filtering_proxy import MAX_CONNECTIONS, FilteringProxy
from sylph.net.url import Proxies

LOCAL = AddressGuard(["127.0.0.1"])


@asynccontextmanager
async def proxying(
    reach: AddressGuard = LOCAL, proxies: Proxies | None = None
) -> AsyncGenerator[tuple[FilteringProxy, int]]:
    proxy = FilteringProxy(reach.check, proxies=proxies, screen=reach.screen)
    url = await proxy.listen()
    try:
        yield proxy, int(url.rpartition(":")[2])
    finally:
        await proxy.close()


async def ask(port: int, *words: bytes) -> bytes:
    """What comes back until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for word in words:
        writer.write(word)
    async with asyncio.timeout(PATIENCE):
        said = await reader.read()
    writer.close()
    return said


def get(url: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {url} HTTP/1.1", "Host: wrong.example", *headers, "", ""]).encode()


def hearing(heard: list[bytes], reply: bytes = OK) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(reply)

    return handler


async def test_a_request_is_passed_on_with_the_right_host() -> None:
    heard: list[bytes] = []
    async with serving(hearing(heard)) as port, proxying() as (_, at):
        said = await ask(at, get(f"http://127.0.0.1:{port}/a?b", "Proxy-Connection: keep-alive", "X-Own: 1"))
    assert said == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    assert heard[0].split(b"\r\n") == [
        b"GET /a?b HTTP/1.1", b"Host: 127.0.0.1:%d" % port, b"X-Own: 1", b"Connection: close", b"", b"",
    ]  # fmt: skip


async def test_a_body_is_passed_on() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(5)
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n" + body)

    async with serving(echo) as port, proxying() as (_, at):
        said = await ask(at, get(f"http://127.0.0.1:{port}/", "Content-Length: 5"), b"hello")
    assert said == b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"


async def test_a_tunnel_carries_anything() -> None:
    async with serving(keeping(OK)) as port, proxying() as (_, at):
        connect = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        said = await ask(at, connect, b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n")
    assert said == b"HTTP/1.1 200 Connection established\r\n\r\n" + OK


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "0x7f.2", "[::1]", "[::ffff:10.0.0.1]", "127.0.0.2"])
async def test_private_addresses_are_refused(host: str) -> None:
    async with proxying() as (proxy, at):
        plain = await ask(at, get(f"http://{host}/"))
        tunnel = await ask(at, f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
    for said in (plain, tunnel):
        assert said.startswith(b"HTTP/1.1 403 Forbidden")
        assert b"is not a public address" in said
    assert len(proxy.refused) == 2


async def test_a_name_is_looked_up_once_and_pinned() -> None:
    looked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        looked.append(host)
        return ["127.0.0.1"] if len(looked) == 1 else ["10.0.0.1"]

    async with serving(saying(OK)) as port, proxying(AddressGuard(["127.0.0.1"], resolve)) as (_, at):
        first = await ask(at, get(f"http://rebind.example:{port}/"))
        second = await ask(at, get(f"http://rebind.example:{port}/"))
    assert (first[:12], second[:12], len(looked)) == (b"HTTP/1.1 200", b"HTTP/1.1 403", 2)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET ftp://a/ HTTP/1.1\r\n\r\n",
        b"CONNECT a b:1 HTTP/1.1\r\n\r\n",
        b"CONNECT :443 HTTP/1.1\r\n\r\n",
        b"GET http:///x HTTP/1.1\r\n\r\n",
        b"GET http://a/ SPDY/3\r\n\r\n",
        b"GET http://127.0.0.1/ HTTP/1.1\r\nX: " + b"x" * 100_000,
    ],
)
async def test_what_is_no_request_to_a_proxy_is_refused(head: bytes) -> None:
    async with proxying() as (_, at):
        assert (await ask(at, head)).startswith(b"HTTP/1.1 400")


async def test_a_server_that_is_not_there_is_said_to_be_so() -> None:
    async with serving(saying()) as port:
        pass
    async with proxying() as (_, at):
        assert (await ask(at, get(f"http://127.0.0.1:{port}/"))).startswith(b"HTTP/1.1 502")
        assert (await ask(at, get("http://no-such-host.invalid/"))).startswith(b"HTTP/1.1 502")


async def test_a_server_that_speaks_no_http_is_said_to_be_so() -> None:
    async with serving(saying(b"SSH-2.0\r\n")) as port, proxying() as (_, at):
        assert (await ask(at, get(f"http://127.0.0.1:{port}/"))).startswith(b"HTTP/1.1 502")


async def test_closing_breaks_off_what_is_under_way() -> None:
    begun = asyncio.Event()

    async def never(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with serving(never) as port:
        async with proxying() as (_, at):
            asking = asyncio.create_task(ask(at, get(f"http://127.0.0.1:{port}/")))
            await begun.wait()
        assert await asking == b""


async def test_a_program_that_takes_too_many_connections_gets_no_more() -> None:
    async with proxying() as (_, at):
        held = [await asyncio.open_connection("127.0.0.1", at) for _ in range(MAX_CONNECTIONS)]
        assert (await ask(at, get("http://127.0.0.1/"))).startswith(b"HTTP/1.1 503")
        for _, writer in held:
            writer.close()


async def test_a_unix_socket_serves_its_owner(tmp_path: Path) -> None:
    proxy = FilteringProxy(LOCAL.check)
    place = await proxy.listen(tmp_path / "deep" / "proxy.sock")
    assert mode(place) == 0o600
    async with serving(saying(OK)) as port:
        reader, writer = await asyncio.open_unix_connection(place)
        writer.write(get(f"http://127.0.0.1:{port}/"))
        assert (await reader.read()).endswith(b"ok")
        writer.close()
    await proxy.close()


def mode(place: str) -> int:
    return Path(place).stat().st_mode & 0o777


async def test_behind_another_proxy_the_way_leads_through_it() -> None:
    heard: list[bytes] = []
    async with serving(hearing(heard)) as port:
        outer = Proxies(http=f"http://me:secret@127.0.0.1:{port}", https=f"http://me:secret@127.0.0.1:{port}")
        async with proxying(proxies=outer) as (_, at):
            plain = await ask(at, get("http://www.example/a"))
            tunnel = await ask(at, b"CONNECT www.example:443 HTTP/1.1\r\n\r\n")
            inner = await ask(at, get("http://10.0.0.1/a"))
    assert plain.endswith(b"ok")
    assert tunnel.startswith(b"HTTP/1.1 200 Connection established")
    assert inner.startswith(b"HTTP/1.1 403")
    assert heard[0].startswith(b"GET http://www.example/a HTTP/1.1\r\nHost: www.example\r\n")
    assert heard[1].startswith(b"CONNECT www.example:443 HTTP/1.1\r\n")
    assert all(b"Proxy-Authorization: Basic bWU6c2VjcmV0" in head for head in heard)


async def test_another_proxy_that_refuses_is_named() -> None:
    async with (
        serving(hearing([], b"HTTP/1.1 407 No\r\n\r\n")) as port,
        proxying(proxies=Proxies(https=f"http://127.0.0.1:{port}")) as (_, at),
    ):
        said = await ask(at, b"CONNECT www.example:443 HTTP/1.1\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 502")
    assert b"does not let us through" in said
