import asyncio
import math
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.model_server import ModelServer, say
from tests.net.servers import OK, Handler, keeping, saying, serving
from tests.patience import PATIENCE

from sylph.core.errors import ProviderError
from sylph.net import http_client
from sylph.net.http_client import IDLE_PER_ORIGIN, HttpClient, HttpTimeouts
from sylph.net.url import Proxies

QUICK = HttpTimeouts(connect=0.1, headers=0.1)


async def fetch(client: HttpClient, port: int, host: str = "127.0.0.1") -> bytes:
    async with client.get(f"http://{host}:{port}/x") as response:
        return await response.read()


async def failing(client: HttpClient, handler: Handler, timeouts: HttpTimeouts | None = None) -> ProviderError:
    async with serving(handler) as port:
        with pytest.raises(ProviderError) as caught:
            async with client.get(f"http://127.0.0.1:{port}/", timeouts=timeouts or HttpTimeouts()) as response:
                await response.read()
    return caught.value


async def test_a_body_of_known_length_is_read(client: HttpClient) -> None:
    async with serving(saying(OK)) as port:
        assert await fetch(client, port) == b"ok"


async def test_a_chunked_body_is_read_piece_by_piece(client: HttpClient) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    handler = saying(head, b"2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n", wait=0.02)
    async with serving(handler) as port, client.get(f"http://127.0.0.1:{port}/") as response:
        assert [piece async for piece in response] == [b"ab", b"c"]


async def test_a_body_without_a_length_ends_with_the_connection(client: HttpClient) -> None:
    async with serving(saying(b"HTTP/1.0 200 OK\r\n\r\nall of it")) as port:
        assert await fetch(client, port) == b"all of it"


async def test_100_continue_is_passed_over(client: HttpClient) -> None:
    handler = saying(b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" + OK)
    async with serving(handler) as port, client.get(f"http://127.0.0.1:{port}/") as response:
        assert (response.status, "x-early" in response.headers) == (200, False)


async def test_a_large_body_does_not_pile_up_in_memory(client: HttpClient) -> None:
    size = 30 << 20
    sent = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while sent < size:
            writer.write(bytes(1 << 18))
            await writer.drain()
            sent += 1 << 18

    async with serving(handler) as port, client.get(f"http://127.0.0.1:{port}/") as response:
        await asyncio.sleep(0.2)
        assert sent < size
        assert len(await response.read(size)) == size


async def test_connections_are_used_again(client: HttpClient) -> None:
    async with ModelServer() as server:
        for _ in range(3):
            async with client.get(f"{server.url}/models") as response:
                await response.read()
        assert server.connections == 1


async def test_a_connection_that_the_server_closed_while_idle_is_replaced(client: HttpClient) -> None:
    async with ModelServer() as server:
        for _ in range(2):
            async with client.get(f"{server.url}/models") as response:
                await response.read()
            server.hang_up()
            await asyncio.sleep(0.02)
        assert server.connections == 2


async def test_a_request_into_a_closing_connection_is_sent_again_once(client: HttpClient) -> None:
    async with serving(keeping(OK)) as port:
        assert [await fetch(client, port) for _ in range(2)] == [b"ok", b"ok"]


async def test_a_new_connection_that_is_closed_without_an_answer_is_an_error(client: HttpClient) -> None:
    error = await failing(client, saying())
    assert (error.failure, "closed the connection" in str(error)) == ("network", True)


async def test_a_request_is_not_sent_again_once_the_answer_has_begun(client: HttpClient) -> None:
    async with serving(keeping(OK, last=b"HTTP/1.1 2")) as port:
        await fetch(client, port)
        with pytest.raises(ProviderError, match="without an answer"):
            await fetch(client, port)


async def test_a_connection_on_which_the_server_speaks_unasked_is_dropped(client: HttpClient) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await asyncio.sleep(0.01)
        writer.write(OK)
        await reader.read()

    async with serving(handler) as port:
        assert await fetch(client, port) == b"ok"
        await asyncio.sleep(0.03)
        assert await fetch(client, port) == b"ok"


async def rush(client: HttpClient, server: ModelServer, gate: asyncio.Event, count: int) -> None:
    """So many requests that are all under way before the first is answered."""

    async def ask() -> None:
        async with client.post(f"{server.url}/chat/completions", b'{"stream":true}') as response:
            await response.read()

    gate.clear()
    before = len(server.requests)
    asking = [asyncio.create_task(ask()) for _ in range(count)]
    await server.until(lambda: len(server.requests) == before + count)
    gate.set()
    await asyncio.gather(*asking)


async def test_no_more_idle_connections_are_kept_than_needed(client: HttpClient) -> None:
    gate, count = asyncio.Event(), IDLE_PER_ORIGIN + 4
    async with ModelServer([say("x", hold=gate)], loop=True) as server:
        await rush(client, server, gate, count)
        await rush(client, server, gate, count)
        assert server.connections == count + 4


async def test_connections_of_an_earlier_rush_are_let_go(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()
    async with ModelServer([say("x", hold=gate)], loop=True) as server:
        await rush(client, server, gate, 6)
        monkeypatch.setattr(http_client, "IDLE_SECONDS", -1.0)
        await rush(client, server, gate, 1)
        monkeypatch.undo()
        await rush(client, server, gate, 6)
        assert server.connections == 6 + 1 + 5


async def test_nothing_at_the_address_is_said_plainly(client: HttpClient) -> None:
    async with serving(saying()) as port:
        pass
    with pytest.raises(ProviderError, match=f"Nothing answers at http://127.0.0.1:{port}; is the server running?"):
        await fetch(client, port)
    with pytest.raises(ProviderError, match="Nothing answers"):
        await fetch(client, port, host="localhost")


async def test_an_unknown_host_is_said_plainly(client: HttpClient) -> None:
    with pytest.raises(ProviderError, match=r"No address is known for the host 'no-such-host\.invalid'"):
        await fetch(client, 80, host="no-such-host.invalid")


async def test_any_other_trouble_with_the_network_is_an_error_too(client: HttpClient) -> None:
    with pytest.raises(ProviderError, match=r"No connection to http://255\.255\.255\.255") as caught:
        await fetch(client, 80, host="255.255.255.255")
    assert caught.value.failure == "network"


async def test_a_server_that_does_not_begin_to_answer_times_out(client: HttpClient) -> None:
    error = await failing(client, saying(b"", wait=math.inf), HttpTimeouts(connect=PATIENCE, headers=0.1))
    assert (error.failure, "within 0.1 s" in str(error)) == ("timeout", True)


async def test_an_answer_that_breaks_off_is_cut(client: HttpClient) -> None:
    error = await failing(client, saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"))
    assert error.failure == "cut"


@pytest.mark.parametrize(
    "noise", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 101 Hm\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"]
)
async def test_what_does_not_speak_http_is_named(client: HttpClient, noise: bytes) -> None:
    error = await failing(client, saying(noise))
    assert (error.failure, "does not speak HTTP" in str(error)) == ("format", True)


async def test_endless_headers_are_refused(client: HttpClient) -> None:
    error = await failing(client, saying(b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"x" * 200_000))
    assert "do not end" in str(error)


async def test_a_body_beyond_the_limit_is_refused(client: HttpClient) -> None:
    async with serving(saying(OK)) as port, client.get(f"http://127.0.0.1:{port}/") as response:
        with pytest.raises(ProviderError, match="longer than 1 bytes"):
            await response.read(limit=1)


async def test_a_redirect_is_not_followed_and_says_where_to(client: HttpClient) -> None:
    error = await failing(client, saying(b"HTTP/1.1 302 Found\r\nLocation: http://b/\r\nContent-Length: 0\r\n\r\n"))
    assert (error.failure, error.status, "http://b/" in str(error)) == ("bad_request", 302, True)


async def test_a_header_that_cannot_be_sent_is_refused(client: HttpClient) -> None:
    with pytest.raises(ProviderError, match="The header Authorization holds characters"):
        async with client.get("http://127.0.0.1:1/", headers={"Authorization": "Bearer a\r\nb"}):
            pass


async def test_cancelling_closes_the_connection_at_once(client: HttpClient) -> None:
    async with ModelServer([say("slow", stall=math.inf), say("slow", stall=math.inf, at="stream")]) as server:

        async def ask() -> None:
            async with client.post(f"{server.url}/chat/completions", b'{"stream":true}') as response:
                await response.read()

        for number in (1, 2):
            task = asyncio.create_task(ask())
            await server.until(lambda number=number: len(server.requests) == number)
            await asyncio.sleep(0.02)
            task.cancel()
            await server.until(lambda number=number: server.broken == number)
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_ipv6_hosts_are_reached(client: HttpClient) -> None:
    try:
        async with serving(saying(OK), host="::1") as port:
            assert await fetch(client, port, host="[::1]") == b"ok"
    except OSError:
        pytest.skip("no IPv6 here")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    key, cert = (tmp_path_factory.mktemp("tls") / name for name in ("key.pem", "cert.pem"))
    command = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,DNS:example.test"]
    subprocess.run([*command.split(), *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    cert.write_text(cert.read_text() + key.read_text())
    return cert


@pytest.fixture
async def secure(certificate: Path) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with serving(keeping(OK, OK), tls=context) as port:
        yield port


def trusting(certificate: Path, proxies: Proxies | None = None) -> HttpClient:
    return HttpClient(proxies=proxies, tls=lambda: ssl.create_default_context(cafile=str(certificate)))


async def test_tls_is_spoken_and_its_connections_are_kept(certificate: Path, secure: int) -> None:
    client = trusting(certificate)
    for _ in range(3):
        async with client.get(f"https://localhost:{secure}/") as response:
            assert await response.read() == b"ok"
    await client.close()


async def test_a_checked_address_is_connected_to_and_the_certificate_is_that_of_the_name(
    certificate: Path, secure: int
) -> None:
    async def check(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    client = HttpClient(tls=lambda: ssl.create_default_context(cafile=str(certificate)), check=check)
    async with client.get(f"https://example.test:{secure}/") as response:
        assert await response.read() == b"ok"
    with pytest.raises(ProviderError, match=r"certificate .* is not trusted: Hostname mismatch"):
        async with client.get(f"https://other.test:{secure}/"):
            pass
    await client.close()


async def test_a_name_is_screened_before_a_proxy_is_asked_for_it() -> None:
    heard: list[bytes] = []

    async def screen(host: str, port: int) -> None:
        if host.startswith("inner"):
            raise ProviderError("bad_request", f"{host} is private")

    async with serving(proxying(0, heard)) as port:
        client = HttpClient(proxies=Proxies(http=f"http://127.0.0.1:{port}"), check=unwanted, screen=screen)
        async with client.get("http://outer.test/") as response:
            assert await response.read() == b"ok"
        with pytest.raises(ProviderError, match=r"inner\.test is private"):
            async with client.get("http://inner.test/"):
                pass
        await client.close()
    assert len(heard) == 1


async def unwanted(host: str, port: int) -> tuple[str, ...]:
    raise AssertionError(f"{host} was looked up, though a proxy does that")


async def test_a_certificate_that_nobody_vouches_for_is_refused(client: HttpClient, secure: int) -> None:
    with pytest.raises(ProviderError, match=r"certificate of https://localhost:\d+ is not trusted: self.signed"):
        async with client.get(f"https://localhost:{secure}/"):
            pass


async def test_https_to_a_server_that_speaks_http_is_said_plainly(client: HttpClient) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 What\r\n\r\n")

    async with serving(handler) as port:
        with pytest.raises(ProviderError, match=r"should it be http://\?"):
            async with client.get(f"https://127.0.0.1:{port}/"):
                pass


def proxying(port: int, heard: list[bytes], verdict: bytes = b"HTTP/1.1 200 Connected\r\n\r\n") -> Handler:
    """A proxy whose every way leads to `port` on this machine."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        if not heard[-1].startswith(b"CONNECT"):
            writer.write(OK)
            return
        writer.write(verdict)
        there, beyond = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(pump(reader, beyond), pump(there, writer))
        finally:
            beyond.close()

    return handler


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


async def test_plain_http_goes_to_the_proxy_whole(certificate: Path) -> None:
    heard: list[bytes] = []
    async with serving(proxying(0, heard)) as port:
        client = HttpClient(proxies=Proxies(http=f"http://me:secret@127.0.0.1:{port}"))
        async with client.get("http://example.test/v1/models") as response:
            assert await response.read() == b"ok"
        await client.close()
    assert heard[0].startswith(b"GET http://example.test/v1/models HTTP/1.1\r\nHost: example.test\r\n")
    assert b"\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n" in heard[0]


async def test_https_goes_through_a_tunnel_of_the_proxy(certificate: Path, secure: int) -> None:
    heard: list[bytes] = []
    async with serving(proxying(secure, heard)) as port:
        client = trusting(certificate, Proxies(https=f"http://127.0.0.1:{port}"))
        for _ in range(2):
            async with client.get("https://example.test/") as response:
                assert await response.read() == b"ok"
        await client.close()
    assert [line.split(b"\r\n")[0] for line in heard] == [b"CONNECT example.test:443 HTTP/1.1"]


async def test_a_proxy_that_refuses_is_named(certificate: Path, secure: int) -> None:
    async with serving(proxying(secure, [], b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")) as port:
        client = trusting(certificate, Proxies(https=f"http://127.0.0.1:{port}"))
        with pytest.raises(ProviderError, match=r"proxy .* does not let us through to https://example.test \(407\)"):
            async with client.get("https://example.test/"):
                pass


async def test_a_connection_that_does_not_come_about_times_out(certificate: Path) -> None:
    async with serving(saying(b"", wait=math.inf)) as port:
        client = trusting(certificate, Proxies(https=f"http://127.0.0.1:{port}"))
        with pytest.raises(ProviderError, match=r"did not accept a connection within 0\.1 s"):
            async with client.get("https://example.test/", timeouts=QUICK):
                pass
