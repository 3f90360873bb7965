"""The list of hosts that commands may reach: kept by a proxy on a unix socket, all that leads out of a sandbox.

It lives in Sylph's process and ends with it: a background job that outlives Sylph goes on without a network, until a
Sylph runs commands in its session again.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from sylph.core.errors import ProviderError, UserError
from sylph.net.address_guard import AddressGuard, AddressRule, canonical_host, literal_ip, parse_rule
from sylph.net.filtering_proxy import FilteringProxy
from sylph.net.url import Proxies

SOCKET = "proxy"
MAX_REFUSED = 100


def parse_hosts(hosts: Sequence[str]) -> list[AddressRule]:
    """The list, understood. Raises UserError where an entry is none."""
    found: list[AddressRule] = []
    for entry in hosts:
        try:
            found.append(parse_rule(entry))
        except UserError as error:
            raise UserError(
                f"sandbox.hosts: {entry!r} is neither a host nor a network.",
                kind="config",
                next=['Write it like "example.org", "*.github.com" or "127.0.0.1:8080".', "sylph config edit"],
            ) from error
    return found


class HostAllowlist:
    """Checks what a command wants to reach. A name on the list must not lead to a private address; an address may."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._rules = parse_hosts(hosts)
        own = zip(hosts, self._rules, strict=True)
        self._reach = AddressGuard([entry for entry, rule in own if rule.network is not None])
        self.refused: list[str] = []

    async def check(self, host: str, port: int) -> Sequence[str]:
        self._require_listed(host, port)
        return await self._reach.check(host, port)

    async def screen(self, host: str, port: int) -> None:
        self._require_listed(host, port)
        await self._reach.screen(host, port)

    def _require_listed(self, host: str, port: int) -> None:
        name = canonical_host(host)
        ip = literal_ip(name)
        if not any(rule.matches_host(name, port) or (ip and rule.contains_ip(ip, port)) for rule in self._rules):
            self.refused = [*self.refused[-MAX_REFUSED:], name]
            raise ProviderError("bad_request", f"{name} is not on the list: sandbox.hosts")


class SandboxProxy:
    """The way out for the commands of one session: a socket in `folder`."""

    def __init__(self, folder: Path, hosts: Sequence[str], proxies: Proxies) -> None:
        self.folder, self._listed = folder, HostAllowlist(hosts)
        self._proxy = FilteringProxy(self._listed.check, proxies=proxies, screen=self._listed.screen)

    async def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The path of a socket must be short, and this one need not be: its folder is named by its number.
        folder = os.open(self.folder, os.O_PATH | os.O_CLOEXEC)
        try:
            await self._proxy.listen(Path(f"/proc/self/fd/{folder}/{SOCKET}"))
        finally:
            os.close(folder)

    async def close(self) -> None:
        await self._proxy.close()
        (self.folder / SOCKET).unlink(missing_ok=True)

    def drain_refused(self) -> list[str]:
        """The hosts that were refused since the last time this was asked."""
        found, self._listed.refused = list(dict.fromkeys(self._listed.refused)), []
        return found
