from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.core.errors import ProviderError, UserError
from sylph.net.address_guard import (
    AddressGuard,
    ForbiddenAddress,
    canonical_host,
    literal_ip,
    nonpublic_reason,
    parse_rule,
)

PUBLIC = ("93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1")
CLOSED = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.0.9", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:7f00:1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::", "2001::1", "2001:db8::1",
    "100::1", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1", "3fff::1", "4000::1",
)  # fmt: skip


def knowing(**names: str) -> AddressGuard:
    return allowing(**names)


def allowing(*allow: str, **names: str) -> AddressGuard:
    """A reach whose resolver knows these names; `__` stands for a dot."""
    known = {name.replace("__", "."): found.split() for name, found in names.items()}

    async def resolve(host: str, port: int) -> Sequence[str]:
        if host not in known:
            raise OSError("no such name")
        return known[host]

    return AddressGuard(allow, resolve)


@pytest.mark.parametrize("address", PUBLIC)
async def test_public_addresses_are_reached(address: str) -> None:
    assert await knowing(a__example=address).check("a.example", 80) == [address]
    assert await AddressGuard().check(address, 80)


@pytest.mark.parametrize("address", CLOSED)
async def test_all_others_are_refused_however_they_are_named(address: str) -> None:
    for host in (address, "a.example"):
        with pytest.raises(ForbiddenAddress, match="is not a public address"):
            await knowing(a__example=address).check(host, 80)


@pytest.mark.parametrize(
    "host",
    [
        *("2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "017700000001", "127.0.0.1.", "0", "0xA9FEA9FE"),
        *("\uff11\uff12\uff17.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "[::1]", "[::ffff:7f00:1]"),
    ],
)
async def test_disguised_addresses_are_seen_through(host: str) -> None:
    with pytest.raises(ForbiddenAddress):
        await AddressGuard().check(host, 80)
    with pytest.raises(ForbiddenAddress):
        await AddressGuard().screen(host, 80)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "localhost.localdomain"])
async def test_this_machine_has_no_name_either(host: str) -> None:
    with pytest.raises((ForbiddenAddress, ProviderError)):
        await AddressGuard().check(host, 80)
    with pytest.raises(ForbiddenAddress):
        await AddressGuard().screen(host, 80)


async def test_one_bad_address_among_good_ones_is_enough() -> None:
    with pytest.raises(ForbiddenAddress, match=r"a\.example leads to 10\.0\.0\.1, which is not a public address"):
        await knowing(a__example="93.184.216.34 10.0.0.1").check("a.example", 443)


async def test_an_unknown_name_is_said_plainly() -> None:
    with pytest.raises(ProviderError, match="No address is known"):
        await knowing().check("nowhere.example", 80)


async def test_names_are_looked_up_in_ascii() -> None:
    assert await allowing(**{"xn--bcher-kva.example".replace(".", "__"): "8.8.8.8"}).check("BÜCHER.example", 80)


@pytest.mark.parametrize("host", ["", "a b", "a/b", "fe80::1%eth0", "a\x00b", "x" * 64 + "ü", "%31%32%37.0.0.1", "a@b"])
def test_what_cannot_be_a_host_is_refused(host: str) -> None:
    with pytest.raises(ProviderError, match="not the name of a host"):
        canonical_host(host)


@pytest.mark.parametrize(
    ("rule", "host", "port"),
    [
        ("10.0.0.0/8", "a.example", 80),
        ("10.0.0.1", "a.example", 80),
        ("10.0.0.1:80", "a.example", 80),
        ("10.0.0.0/8:80", "a.example", 80),
        ("a.example", "a.example", 80),
        ("A.Example.", "a.example", 80),
        ("a.example:80", "a.example", 80),
        ("*.example", "a.example", 80),
        ("10.0.0.1", "10.0.0.1", 80),
        ("10.0.0.1", "0x0a000001", 80),
    ],
)
async def test_the_configuration_can_allow(rule: str, host: str, port: int) -> None:
    assert await allowing(rule, a__example="10.0.0.1").check(host, port)
    with pytest.raises(ForbiddenAddress):
        await allowing(rule, b__other="10.1.1.1 192.168.0.1").check("b.other", port)


@pytest.mark.parametrize("rule", ["10.0.0.2", "a.example:81", "example", "*.a.example", "10.0.0.1:443", "fc00::/7"])
async def test_it_allows_nothing_else(rule: str) -> None:
    with pytest.raises(ForbiddenAddress):
        await allowing(rule, a__example="10.0.0.1").check("a.example", 80)


def test_an_ipv6_rule_may_have_a_port() -> None:
    rule = parse_rule("[::1]:8080")
    assert rule.port == 8080
    assert (ip := literal_ip("::1"))
    assert rule.contains_ip(ip, 8080)
    assert not rule.contains_ip(ip, 80)


@pytest.mark.parametrize(
    "rule", ["10.0.0.0/33", "a b", "", "a:b", "host:99999", "http://a.example", "*", "a.example/x"]
)
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(UserError, match=r"web\.allow"):
        AddressGuard([rule])


async def test_through_a_proxy_what_is_not_known_here_may_pass() -> None:
    await knowing().screen("www.example", 443)
    await knowing(www__example="8.8.8.8").screen("www.example", 443)
    await allowing("wiki.corp").screen("wiki.corp", 443)


@pytest.mark.parametrize("host", ["wiki", "wiki.corp", "metadata.google.internal", "printer.local", "10.0.0.1", "::1"])
async def test_through_a_proxy_what_is_private_may_not(host: str) -> None:
    with pytest.raises(ForbiddenAddress):
        await knowing().screen(host, 80)


async def test_through_a_proxy_a_name_for_a_private_address_may_not() -> None:
    with pytest.raises(ForbiddenAddress):
        await knowing(www__example="127.0.0.1").screen("www.example", 80)


@given(st.ip_addresses())
def test_every_address_is_judged(ip: object) -> None:
    assert isinstance(ip, IPv4Address | IPv6Address)
    if not ip.is_global:
        # Python's tables know no address to be private that ours hold to be public, but those that carry another.
        assert nonpublic_reason(ip) or getattr(ip, "ipv4_mapped", None) or getattr(ip, "sixtofour", None)


@given(st.text())
def test_no_text_is_taken_for_a_host_that_it_is_not(text: str) -> None:
    try:
        host = canonical_host(text)
    except ProviderError:
        return
    assert host.isascii()
    assert canonical_host(host) == host
