import pytest

from sylph.core.errors import ProviderError
from sylph.net.url import Proxies, basic_auth, choose_proxy, parse_url

PROXIES = Proxies(http="http://proxy:3128", https="proxy:3129", no="internal.org, .corp ,10.0.0.1:8080")


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("http://host", "http://host", "/"),
        ("http://host:80/v1", "http://host", "/v1"),
        ("https://host:8443/v1?x=1", "https://host:8443", "/v1?x=1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080", "/v1"),
        ("http://u:p@host/v1", "http://host", "/v1"),
    ],
)
def test_a_url_has_an_origin_and_a_target(url: str, origin: str, target: str) -> None:
    address = parse_url(url)
    assert (address.origin, address.target) == (origin, target)


@pytest.mark.parametrize("url", ["host:80", "ftp://host", "http://", "http://host:port/", "http://[::1"])
def test_what_is_no_url_is_said_to_be_none(url: str) -> None:
    with pytest.raises(ProviderError, match="is not a URL"):
        parse_url(url)


def test_a_login_in_a_url_is_decoded() -> None:
    assert basic_auth(parse_url("http://me:p%40ss@proxy").login) == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://example.org", "http://proxy:3128"),
        ("https://example.org", "http://proxy:3129"),
        ("https://internal.org", None),
        ("https://a.internal.org", None),
        ("https://notinternal.org", "http://proxy:3129"),
        ("http://x.corp", None),
        ("http://10.0.0.1:8080", None),
        ("http://10.0.0.1:8081", "http://proxy:3128"),
        ("http://127.0.0.1:11434", None),
        ("http://localhost:1", None),
        ("http://[::1]:1", None),
    ],
)
def test_the_way_goes_through_the_proxy_unless_the_host_is_exempt_or_here(url: str, proxy: str | None) -> None:
    hop = choose_proxy(parse_url(url), PROXIES)
    assert (hop and hop.origin) == proxy


def test_a_star_exempts_every_host() -> None:
    assert choose_proxy(parse_url("http://example.org"), Proxies(http="http://proxy", no="*")) is None
