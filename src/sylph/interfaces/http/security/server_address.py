"""Where the server is reached, and under which names."""

import ipaddress
import socket

from msgspec import Struct


class ServerAddress(Struct, frozen=True, kw_only=True):
    """`host` is what a person would type: never the wildcard that is listened on."""

    host: str = "127.0.0.1"
    port: int = 8090
    secure: bool = False
    exposed: bool = False
    """Whether others than this machine reach it."""
    names: tuple[str, ...] = ()
    """All names and addresses that lead here, beside those of the machine itself."""
    fingerprint: str = ""
    proxy_url: str = ""
    """What people use instead, where a proxy stands in front."""

    @property
    def public_url(self) -> str:
        """Where links lead to."""
        return self.proxy_url or self.url

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def is_wildcard(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_unspecified


def outward_address(family: int = socket.AF_INET) -> str:
    """The address that others in the network reach this machine at; no packet is sent to find it."""
    far = "192.0.2.1" if family == socket.AF_INET else "2001:db8::1"
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((far, 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1" if family == socket.AF_INET else "::1"


def machine_names(bound: str) -> tuple[str, ...]:
    """What a machine in the same network may call this one when `bound` is listened on."""
    if is_loopback(bound):
        return ()
    called = socket.gethostname().lower()
    names = [called] if called and called != "localhost" else []
    names += [f"{called}.local"] if names and "." not in called else []
    if not is_wildcard(bound):
        return (bound, *names)
    families = (socket.AF_INET, socket.AF_INET6) if ":" in bound else (socket.AF_INET,)
    return (*dict.fromkeys(each for family in families if not is_loopback(each := outward_address(family))), *names)
