"""The client's side of a WebSocket, against servers that keep to the rules and servers that do not."""

import asyncio
import base64
import hashlib
import os
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model_server.websocket import frame as unmasked
from tests.net.servers import serving
from tests.net.test_http import certificate as certificate
from tests.net.test_http import proxying
from tests.patience import PATIENCE, eventually

from sylph.core.errors import ProviderError
from sylph.net.http_client import HttpClient, HttpTimeouts
from sylph.net.url import Proxies
from sylph.net.websocket import GUID, WebSocket, WebSocketClosed, WebSocketDeclined
from sylph.net.websocket_frame import WebSocketDecoder, WebSocketMessage, apply_mask, encode_frame

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SOON = HttpTimeouts(connect=PATIENCE, headers=PATIENCE)


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient, None]:
    client = HttpClient()
    yield client
    await client.close()


def welcoming(talk: Talk, spoil: Callable[[bytes], bytes] = lambda head: head) -> Talk:
    """A server that shakes hands, and then talks."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"Sec-WebSocket-Key: (\S+)", head)
        assert found
        assert re.search(rb"Upgrade: websocket\r\nConnection: Upgrade\r\n", head)
        accept = base64.b64encode(hashlib.sha1(found[1] + GUID, usedforsecurity=False).digest())
        said = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
        writer.write(spoil(said + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"))
        await talk(reader, writer)

    return handler


async def heard(reader: asyncio.StreamReader) -> bytes:
    """The payload of one short frame of the client, unmasked."""
    head = await reader.readexactly(2)
    assert head[1] & 0x80
    size = head[1] & 0x7F
    if size >= 126:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    mask = await reader.readexactly(4)
    return apply_mask(await reader.readexactly(size), mask)


@asynccontextmanager
async def opened(client: HttpClient, talk: Talk, limit: int = 1 << 20) -> AsyncGenerator[WebSocket, None]:
    async with serving(welcoming(talk)) as port:
        url = f"http://127.0.0.1:{port}/v1/responses?x=1"
        socket = await WebSocket.open(client, url, headers={"X-A": "b"}, timeouts=SOON, limit=limit)
        yield socket
        socket.abort()
        await asyncio.sleep(0)


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
def test_masking_is_undone_by_itself(data: bytes, mask: bytes) -> None:
    assert apply_mask(apply_mask(data, mask), mask) == data


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_000])
def test_a_frame_of_every_length_is_read_back(size: int) -> None:
    data = os.urandom(size)
    sent = encode_frame(2, data, b"abcd")
    assert sent[1] & 0x80
    # What a server would read: the same frame without its mask.
    assert WebSocketDecoder(1 << 20).feed(unmasked(2, data)) == [WebSocketMessage(2, data)]
    assert apply_mask(sent[-size:] if size else b"", b"abcd") == data


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.integers(1, 9))
def test_messages_come_out_however_the_bytes_are_cut(parts: list[bytes], size: int) -> None:
    stream = b"".join(
        unmasked(1 if not at else 0, part, last=at == len(parts) - 1) + unmasked(9, b"p")
        for at, part in enumerate(parts)
    )
    frames = WebSocketDecoder(1 << 10)
    found = [each for at in range(0, len(stream), size) for each in frames.feed(stream[at : at + size])]
    assert [each for each in found if each.kind == 1] == [WebSocketMessage(1, b"".join(parts))]
    assert [each.kind for each in found].count(9) == len(parts)


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1\x00",  # a reserved bit
        b"\x83\x00",  # an opcode that is not defined
        b"\x81\x80abcd",  # masked by the server
        b"\x09\x00",  # a ping in parts
        b"\x89\x7e\x00\x80",  # a ping that is too long
        b"\x80\x00",  # goes on with nothing
        b"\x01\x00\x81\x00",  # begins anew in the middle
        b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff",  # longer than anything
        b"\x01\x7e\x00\xff" + b"x" * 255 + b"\x80\x7f\x00\x00\x00\x00\x00\x10\x00\x00",  # too long in parts
    ],
)
def test_a_server_that_breaks_the_rules_is_not_listened_to(data: bytes) -> None:
    with pytest.raises(ProviderError, match="does not keep to the WebSocket protocol"):
        WebSocketDecoder(1 << 20).feed(data)


async def test_messages_go_both_ways(client: HttpClient) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(unmasked(1, (await heard(reader)).upper()))

    async with opened(client, echo) as socket:
        for said in (b"hello", b"x" * 70_000):
            socket.send(said)
            assert await socket.receive() == said.upper()


async def test_a_ping_is_answered_and_fragments_are_put_together(client: HttpClient) -> None:
    pongs: asyncio.Queue[bytes] = asyncio.Queue()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(unmasked(1, b"Gr\xc3", last=False) + unmasked(9, b"there?") + unmasked(0, b"\xbc\xc3\x9fe"))
        await pongs.put(await heard(reader))
        await asyncio.Event().wait()

    async with opened(client, talk) as socket:
        assert (await socket.receive()).decode() == "Grüße"
        async with asyncio.timeout(PATIENCE):
            assert await pongs.get() == b"there?"


async def test_what_comes_with_the_handshake_is_not_lost(client: HttpClient) -> None:
    async with serving(welcoming(_nothing, lambda head: head + unmasked(1, b"early"))) as port:
        socket = await WebSocket.open(client, f"http://127.0.0.1:{port}/", headers={}, timeouts=SOON)
        assert await socket.receive() == b"early"
        await socket.close()


async def test_a_close_is_told_with_its_reason_and_answered(client: HttpClient) -> None:
    answered: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(unmasked(1, b"last") + unmasked(8, (1013).to_bytes(2, "big") + b"later"))
        answered.append(await heard(reader))

    async with opened(client, talk) as socket:
        assert await socket.receive() == b"last"
        with pytest.raises(WebSocketClosed, match="later") as caught:
            await socket.receive()
        assert (caught.value.code, socket.alive) == (1013, False)
        with pytest.raises(ProviderError):
            socket.send(b"more")
        await eventually(lambda: answered, "an answer to the close")
    assert answered == [(1013).to_bytes(2, "big")]


async def test_a_connection_that_breaks_off_is_told(client: HttpClient) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x81\x05he")

    async with opened(client, talk) as socket:
        with pytest.raises(WebSocketClosed) as caught:
            await socket.receive()
    assert (caught.value.code, caught.value.failure) == (1006, "cut")


async def test_a_message_that_is_too_long_ends_the_connection(client: HttpClient) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(unmasked(1, b"x" * 2000))
        await asyncio.Event().wait()

    async with opened(client, talk, limit=1000) as socket:
        with pytest.raises(ProviderError, match="more than 1,000 bytes"):
            await socket.receive()
        assert not socket.alive


async def test_we_say_goodbye_and_do_not_wait_for_ever(client: HttpClient) -> None:
    said: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        said.append(await heard(reader))
        await asyncio.Event().wait()

    async with opened(client, talk) as socket, asyncio.timeout(PATIENCE):
        await socket.close()
    assert said == [(1000).to_bytes(2, "big")]


def spoilt(head: bytes, how: str) -> bytes:
    match how:
        case "key":
            return re.sub(rb"Accept: \S+", b"Accept: nonsense", head)
        case "upgrade":
            return head.replace(b"Upgrade: WebSocket", b"Upgrade: h2c")
        case "ssh":
            return b"SSH-2.0-x\r\n\r\n"
        case _:
            return b"HTTP/1.1 101 x\r\n" + b"A: b\r\n" * 20_000


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("key", "does not fit our question"),
        ("upgrade", "does not fit our question"),
        ("ssh", "does not speak HTTP"),
        ("endless", "headers do not end"),
    ],
)
async def test_a_wrong_handshake_is_refused(client: HttpClient, how: str, said: str) -> None:
    async with serving(welcoming(_nothing, lambda head: spoilt(head, how))) as port:
        with pytest.raises(ProviderError, match=said):
            await WebSocket.open(client, f"http://127.0.0.1:{port}/", headers={}, timeouts=SOON)


async def test_a_server_that_wants_no_websocket_is_heard(client: HttpClient) -> None:
    answer = b'HTTP/1.1 404 Not Found\r\nContent-Length: 11\r\nX-A: b\r\n\r\n{"error":1}'
    async with serving(welcoming(_nothing, lambda _: answer)) as port:
        with pytest.raises(WebSocketDeclined) as caught:
            await WebSocket.open(client, f"http://127.0.0.1:{port}/", headers={}, timeouts=SOON)
    error = caught.value
    assert (error.status, error.headers["x-a"], error.body) == (404, "b", b'{"error":1}')


async def test_a_server_that_says_nothing_is_not_waited_for(client: HttpClient) -> None:
    async with serving(welcoming(_nothing, lambda _: b"")) as port:
        with pytest.raises(ProviderError) as caught:
            brief = HttpTimeouts(connect=PATIENCE, headers=0.1)
            await WebSocket.open(client, f"http://127.0.0.1:{port}/", headers={}, timeouts=brief)
    assert caught.value.failure == "timeout"


async def hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(unmasked(1, b"hello"))
    await asyncio.Event().wait()


async def test_the_way_may_lead_through_a_proxy() -> None:
    asked: list[bytes] = []
    async with serving(welcoming(hello)) as port, serving(proxying(port, asked)) as proxy:
        client = HttpClient(proxies=Proxies(http=f"http://127.0.0.1:{proxy}"))
        socket = await WebSocket.open(client, "http://example.test/v1", headers={}, timeouts=SOON)
        assert await socket.receive() == b"hello"
        socket.abort()
        await client.close()
    assert asked[0].startswith(b"CONNECT example.test:80 HTTP/1.1\r\n")


async def test_tls_is_spoken(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    client = HttpClient(tls=lambda: ssl.create_default_context(cafile=str(certificate)))
    async with serving(welcoming(hello), tls=context) as port:
        socket = await WebSocket.open(client, f"https://localhost:{port}/", headers={}, timeouts=SOON)
        assert await socket.receive() == b"hello"
        socket.abort()
        await client.close()


async def _nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()
