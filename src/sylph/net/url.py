"""Where a request goes: the parts of a URL, and the proxy on the way."""

import ipaddress
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from sylph.core.errors import ProviderError

DEFAULT_PORTS = {"http": 80, "https": 443}


class ParsedUrl(NamedTuple):
    scheme: str
    host: str
    port: int
    target: str
    login: str = ""

    @property
    def authority(self) -> str:
        """The host as it stands in a `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"


class Proxies(Struct, frozen=True, kw_only=True):
    """The proxies of the environment; `no` is the list of hosts that are reached without one."""

    http: str = ""
    https: str = ""
    no: str = ""


def parse_url(url: str) -> ParsedUrl:
    """The parts of an http or https URL; `user:password@` becomes `login`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ProviderError("bad_request", f"{url!r} is not a URL: {error}.") from None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ProviderError("bad_request", f"{url!r} is not a URL: it must look like http://host:port/path.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
    return ParsedUrl(parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme], target, login)


def choose_proxy(address: ParsedUrl, proxies: Proxies) -> ParsedUrl | None:
    """The proxy to go through. There is none for this machine itself: a local model server is never behind one."""
    proxy = proxies.https if address.scheme == "https" else proxies.http
    if not proxy or is_loopback(address.host) or _is_exempt(address, proxies.no):
        return None
    return parse_url(proxy if "://" in proxy else f"http://{proxy}")


def basic_auth(login: str) -> str:
    return "Basic " + b64encode(login.encode()).decode()


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_exempt(address: ParsedUrl, no: str) -> bool:
    host = address.host
    for entry in no.lower().split(","):
        name, _, port = entry.strip().removeprefix("*").partition(":")
        name = name.removeprefix(".")
        if entry.strip() == "*":
            return True
        if name and port in ("", str(address.port)) and (host == name or host.endswith("." + name)):
            return True
    return False
