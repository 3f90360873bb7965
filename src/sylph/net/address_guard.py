"""Which machines may be reached: public ones, and what the configuration allows besides."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from msgspec import Struct

from sylph.core.errors import ProviderError, UserError

IP = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network
AddressCheck = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses to connect to for a host and port, each of them permitted. Raises Forbidden where one is not."""
ProxyScreen = Callable[[str, int], Awaitable[object]]
"""Says whether a proxy may be asked for a host and port. Raises Forbidden where not."""
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

# The tables of IANA for special purposes; Python's own change from version to version.
CLOSED_V4 = (
    ("0.0.0.0/8", "this machine"),
    ("10.0.0.0/8", "a private network"),
    ("100.64.0.0/10", "a provider's own network"),
    ("127.0.0.0/8", "this machine"),
    ("169.254.0.0/16", "a link-local address, where clouds keep credentials"),
    ("172.16.0.0/12", "a private network"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "reserved"),
    ("192.88.99.0/24", "reserved"),
    ("192.168.0.0/16", "a private network"),
    ("198.18.0.0/15", "reserved"),
    ("198.51.100.0/24", "reserved"),
    ("203.0.113.0/24", "reserved"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
CLOSED_V6 = (
    ("::1/128", "this machine"),
    ("::/128", "this machine"),
    ("fc00::/7", "a private network"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a private network"),
    ("ff00::/8", "multicast"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "reserved"),
    ("3fff::/20", "reserved"),
)
# Addresses that carry an IPv4 address to which a gateway passes them on: the prefix, and how far right it stands.
IPV4_CARRIERS = (("::ffff:0:0/96", 0), ("64:ff9b::/96", 0), ("2002::/16", 80))
PUBLIC_V6 = IPv6Network("2000::/3")
# Names that mean something only inside of a network; a proxy would look them up where we cannot see.
INTERNAL_SUFFIXES = ("localhost", "localdomain", "local", "internal", "home.arpa", "lan", "intranet", "corp", "home")


class ForbiddenAddress(ProviderError):
    """An address that may not be reached."""

    def __init__(self, message: str, *, host: str) -> None:
        super().__init__(
            "bad_request", message, next=[f'The user can permit it: web.allow = ["{host}"] in the config.']
        )


class AddressRule(Struct, frozen=True):
    """One entry of the allow-list: a name or a network, for one port or for all (0)."""

    name: str = ""
    network: IpNetwork | None = None
    port: int = 0

    def matches_host(self, host: str, port: int) -> bool:
        if not self.name or self.port not in (0, port):
            return False
        return host == self.name or (self.name.startswith("*.") and host.endswith(self.name[1:]))

    def contains_ip(self, ip: IP, port: int) -> bool:
        return self.network is not None and self.port in (0, port) and ip in self.network


def parse_rule(entry: str) -> AddressRule:
    """`host`, `*.host`, an address or a network such as 10.0.0.0/8, each with `:port` if only that one is meant."""
    with suppress(ValueError):
        return AddressRule(network=ipaddress.ip_network(entry.strip("[]"), strict=False))
    bare, _, port = entry.rpartition(":") if ":" in entry else (entry, "", "")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise _bad_entry_error(entry)
    if port and ("/" in bare or literal_ip(bare.strip("[]")) is not None):
        rule = parse_rule(bare)
        return AddressRule(network=rule.network, port=int(port))
    try:
        name = canonical_host(bare.removeprefix("*."))
    except ProviderError:
        raise _bad_entry_error(entry) from None
    return AddressRule(name="*." + name if bare.startswith("*.") else name, port=int(port or 0))


def canonical_host(host: str) -> str:
    """The one way to write a host: lower case, ASCII, without the dot at its end. Raises where it cannot be one."""
    try:
        plain = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        plain = ""
    plain = plain.lower().strip("[]").removesuffix(".")
    if not plain or len(plain) > 253 or not all(char.isalnum() or char in "-._:" for char in plain):
        raise ProviderError("bad_request", f"{host!r} is not the name of a host.")
    return plain


def literal_ip(host: str) -> IP | None:
    """The address that `host` is, in any form that systems understand: 127.1, 0x7f000001, 2130706433, 0177.0.0.1."""
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    try:
        return IPv4Address(socket.inet_aton(host)) if host and host[0].isdigit() else None
    except OSError:
        return None


def nonpublic_reason(ip: IP) -> str:
    """Why an address is not a public one; empty if it is."""
    if isinstance(ip, IPv4Address):
        return next((why for network, why in _V4 if ip in network), "")
    for network, shift in _CARRIERS:
        if ip in network:
            return nonpublic_reason(IPv4Address((int(ip) >> shift) & 0xFFFFFFFF))
    why = next((why for network, why in _V6 if ip in network), "")
    return why or ("" if ip in PUBLIC_V6 else "reserved")


async def system_resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class AddressGuard:
    """The check of every address. A name is looked up once; each address behind it must be permitted."""

    def __init__(self, allow: Sequence[str] = (), resolve: Resolver = system_resolve) -> None:
        self._rules = tuple(parse_rule(entry) for entry in allow)
        self._resolve = resolve

    async def check(self, host: str, port: int) -> Sequence[str]:
        """The addresses behind `host`, for a connection to exactly these: a second look-up could say something else."""
        name = canonical_host(host)
        found = await self._look_up(name, port)
        self._check_addresses(name, port, found)
        return found

    def refusal_for(self, host: str, port: int) -> ForbiddenAddress | None:
        """Why a host that is itself an address is refused; what a name leads to is seen when it is looked up."""
        name = canonical_host(host)
        try:
            self._check_addresses(name, port, (str(ip),) if (ip := literal_ip(name)) else ())
        except ForbiddenAddress as error:
            return error
        return None

    async def screen(self, host: str, port: int) -> None:
        """For a way through a proxy, which looks the name up itself: what we know to be private is refused."""
        name = canonical_host(host)
        if self._is_allowed_name(name, port):
            return
        if literal_ip(name) is None and (
            "." not in name or name.endswith(tuple("." + end for end in INTERNAL_SUFFIXES))
        ):
            raise ForbiddenAddress(f"{name} is a name inside of a network.", host=name)
        try:
            found = await self._look_up(name, port)
        except ProviderError:
            return  # Behind a proxy it is normal that names of the outer world are not known here.
        self._check_addresses(name, port, found)

    async def _look_up(self, name: str, port: int) -> Sequence[str]:
        if ip := literal_ip(name):
            return (str(ip),)
        try:
            found = await self._resolve(name, port)
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise ProviderError("network", f"No address is known for the host {name!r}; is it spelt right?")
        return found

    def _check_addresses(self, name: str, port: int, addresses: Sequence[str]) -> None:
        if self._is_allowed_name(name, port):
            return
        for address in addresses:
            ip = ipaddress.ip_address(address)
            why = nonpublic_reason(ip)
            if why and not any(rule.contains_ip(ip, port) for rule in self._rules):
                leads = "" if address == name else f" leads to {address}, which"
                raise ForbiddenAddress(f"{name}{leads} is not a public address: {why}.", host=name)

    def _is_allowed_name(self, name: str, port: int) -> bool:
        return any(rule.matches_host(name, port) for rule in self._rules)


def _bad_entry_error(entry: str) -> UserError:
    return UserError(
        f"web.allow: {entry!r} is neither a host nor a network.",
        kind="config",
        next=['Write it like "intranet.example", "*.example", "10.0.0.0/8" or "127.0.0.1:8080".', "sylph config edit"],
    )


_V4 = tuple((IPv4Network(network), why) for network, why in CLOSED_V4)
_V6 = tuple((IPv6Network(network), why) for network, why in CLOSED_V6)
_CARRIERS = tuple((IPv6Network(network), shift) for network, shift in IPV4_CARRIERS)
