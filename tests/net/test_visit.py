import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.net.servers import OK, Handler, saying, serving

from sylph.core.errors import ProviderError
from sylph.net.address_guard import AddressGuard, ForbiddenAddress
from sylph.net.decompress import BodyDecompressor
from sylph.net.http_client import HttpClient
from sylph.net.page_fetch import FetchedPage, FetchLimits, fetch_page, normalize_url

SMALL = FetchLimits(bytes=1000, seconds=2.0, hops=3)


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    reach = AddressGuard(["127.0.0.0/8"])
    client = HttpClient(check=reach.check, screen=reach.screen)
    yield client
    await client.close()


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def moved(place: str, status: str = "302 Found") -> bytes:
    return answer(b"", f"Location: {place}", status=status)


def routes(**pages: bytes) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode()
        writer.write(pages[line.split()[1].strip("/")])

    return handler


async def got(client: HttpClient, handler: Handler, path: str = "", bounds: FetchLimits = SMALL) -> FetchedPage:
    async with serving(handler) as port:
        return await fetch_page(client, f"http://127.0.0.1:{port}/{path}", bounds=bounds)


async def test_a_page_is_read(client: HttpClient) -> None:
    page = await got(client, saying(answer(b"hello", "Content-Type: text/plain")))
    assert (page.status, page.body, page.cut, page.headers["content-type"]) == (200, b"hello", False, "text/plain")


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("GZIP", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compressobj(wbits=-15).compress(b"") + zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
    ],
)
async def test_packed_bodies_are_unpacked(client: HttpClient, encoding: str, packed: bytes) -> None:
    page = await got(client, saying(answer(packed, f"Content-Encoding: {encoding}")))
    assert page.body == b"hello"


async def test_a_bomb_is_cut_at_the_bound(client: HttpClient) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    page = await got(client, saying(answer(bomb, "Content-Encoding: gzip")))
    assert (len(page.body), page.cut) == (1000, True)


async def test_an_endless_body_is_cut_at_the_bound(client: HttpClient) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 100)
            await writer.drain()

    page = await got(client, handler)
    assert (len(page.body), page.cut) == (1000, True)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
async def test_a_packing_nobody_asked_for_is_refused(client: HttpClient, encoding: str) -> None:
    with pytest.raises(ProviderError, match="not asked for"):
        await got(client, saying(answer(b"x", f"Content-Encoding: {encoding}")))


@pytest.mark.parametrize("body", [b"no gzip at all", gzip.compress(b"hello" * 99, mtime=0)[:-9]])
async def test_a_broken_packing_is_refused(client: HttpClient, body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        await got(client, saying(answer(body, "Content-Encoding: gzip")))
    assert caught.value.failure in ("format", "cut")


def test_an_empty_packed_body_is_empty() -> None:
    assert BodyDecompressor("gzip").complete


async def test_a_slow_drip_ends_in_time(client: HttpClient) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    with pytest.raises(ProviderError, match=r"not read within 0\.3 s") as caught:
        await got(client, saying(head, *[b"x"] * 99, wait=0.05), bounds=FetchLimits(seconds=0.3))
    assert caught.value.failure == "timeout"


async def test_a_body_shorter_than_it_says_is_an_error(client: HttpClient) -> None:
    with pytest.raises(ProviderError, match="broke off"):
        await got(client, saying(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"))


async def test_huge_headers_are_an_error(client: HttpClient) -> None:
    with pytest.raises(ProviderError, match="do not end"):
        await got(client, saying(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000))


@pytest.mark.parametrize("status", ["301 A", "302 B", "303 C", "307 D", "308 E"])
async def test_redirects_are_followed(client: HttpClient, status: str) -> None:
    page = await got(client, routes(a=moved("/b?x=1", status), **{"b?x=1": answer(b"there")}), "a")
    assert (page.body, page.url.rpartition("/")[2], len(page.hops)) == (b"there", "b?x=1", 1)


async def test_a_redirect_in_utf_8_is_understood(client: HttpClient) -> None:
    page = await got(client, routes(a=moved("/b%C3%BC").replace(b"%C3%BC", b"\xc3\xbc"), **{"b%C3%BC": OK}), "a")
    assert page.body == b"ok"


async def test_a_circle_is_noticed(client: HttpClient) -> None:
    with pytest.raises(ProviderError, match="leads in a circle"):
        await got(client, routes(a=moved("/b"), b=moved("/a")), "a")


async def test_an_endless_way_is_given_up(client: HttpClient) -> None:
    pages = {str(number): moved(f"/{number + 1}") for number in range(9)}
    with pytest.raises(ProviderError, match="more than 3 times"):
        await got(client, routes(**pages), "0")


@pytest.mark.parametrize("place", ["file:///etc/passwd", "gopher://a/", "javascript:alert(1)", "http://[x/"])
async def test_a_redirect_elsewhere_than_the_web_is_refused(client: HttpClient, place: str) -> None:
    with pytest.raises(ProviderError, match="cannot be opened"):
        await got(client, routes(a=moved(place)), "a")


@pytest.mark.parametrize("place", ["http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "//0x0a.1/"])
async def test_a_redirect_to_a_private_address_is_refused(client: HttpClient, place: str) -> None:
    with pytest.raises(ForbiddenAddress, match="not a public address"):
        await got(client, routes(a=moved(place)), "a")


async def test_the_caller_can_stop_a_redirect(client: HttpClient) -> None:
    def onward(source: str, goal: str) -> None:
        raise ProviderError("bad_request", f"no further than {goal}")

    async with serving(routes(a=moved("http://b.example/"))) as port:
        with pytest.raises(ProviderError, match=r"no further than http://b\.example/"):
            await fetch_page(client, f"http://127.0.0.1:{port}/a", bounds=SMALL, onward=onward)


async def test_a_name_that_means_something_else_a_moment_later_cannot_lead_us_there() -> None:
    looked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        looked.append(host)
        return ["127.0.0.1"] if len(looked) == 1 else ["10.0.0.1"]

    reach = AddressGuard(["127.0.0.1"], resolve)
    client = HttpClient(check=reach.check)
    async with serving(routes(a=moved("/b"), b=OK)) as port:
        with pytest.raises(ForbiddenAddress, match=r"rebind\.example leads to 10\.0\.0\.1"):
            await fetch_page(client, f"http://rebind.example:{port}/a", bounds=SMALL)
    # Once for each connection and no more: what was checked is what was connected to.
    assert looked == ["rebind.example"] * 2
    await client.close()


async def test_the_host_is_named_though_the_address_is_connected_to() -> None:
    heard: list[bytes] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.9", "127.0.0.1"]

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)

    reach = AddressGuard(["127.0.0.0/8"], resolve)
    client = HttpClient(check=reach.check)
    async with serving(handler) as port:
        page = await fetch_page(client, f"http://Bücher.example:{port}/ü x?q=ä#part", bounds=SMALL)
    assert page.body == b"ok"
    assert heard[0].decode().startswith(f"GET /%C3%BC%20x?q=%C3%A4 HTTP/1.1\r\nHost: xn--bcher-kva.example:{port}\r\n")
    await client.close()


@pytest.mark.parametrize("url", ["", "x", "ftp://a/", "file:///etc", "http://", "http://a:b/", "http://[1", "//a/b"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ProviderError, match="is not a URL"):
        normalize_url(url)


@pytest.mark.parametrize("url", ["http://u@a/", "http://u:p@a/", "http://good.example\\@10.0.0.1/"])
def test_a_url_with_a_login_is_refused(url: str) -> None:
    with pytest.raises(ProviderError, match="carries a user name"):
        normalize_url(url)
