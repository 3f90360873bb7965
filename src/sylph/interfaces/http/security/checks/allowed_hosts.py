"""By which names the server may be asked: a page whose name was rebound to our address has none of them."""

import ipaddress
from collections.abc import Iterable

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class AllowedHosts:
    def __init__(self, names: Iterable[str]) -> None:
        self._names = LOOPBACK | {normalize_host(name) for name in names}

    def allows_host(self, host: str, local: str) -> bool:
        """Whether a `Host` header is ours. `local` is the address that was connected to: it cannot be rebound."""
        name = host_name(host)
        return bool(name) and (name in self._names or name == normalize_host(local))


def host_name(host: str) -> str:
    """The name in a `Host` header, without its port; empty where it is not well-formed."""
    if host.startswith("["):
        inside, closed, rest = host[1:].partition("]")
        good = closed and (not rest or (rest[0] == ":" and rest[1:].isdecimal()))
        return normalize_host(inside) if good else ""
    name, colon, port = host.partition(":")
    return normalize_host(name) if not colon or (port.isascii() and port.isdecimal()) else ""


def normalize_host(name: str) -> str:
    """One way to write a name or an address."""
    name = name.strip().strip("[]").lower().removesuffix(".")
    if ":" not in name:
        return name
    try:
        address = ipaddress.IPv6Address(name.partition("%")[0])
    except ValueError:
        return name
    return str(address.ipv4_mapped or address)
