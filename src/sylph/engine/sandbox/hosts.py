"""The list of hosts that commands may reach: kept by a proxy on a unix socket, all that leads out of a sandbox.

It lives in Sylph's process and ends with it: a background job that outlives Sylph goes on without a network, until a
Sylph runs commands in its session again.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from sylph.core.errors import ProviderError, UserError
from sylph.net.address import Proxies
from sylph.net.proxy import Proxy
from sylph.net.reach import Reach, Rule, canonical, literal, parse_rule

SOCKET = "proxy"
KEPT = 100


def rules_of(hosts: Sequence[str]) -> list[Rule]:
    """The list, understood. Raises UserError where an entry is none."""
    found: list[Rule] = []
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


class Listed:
    """Checks what a command wants to reach. A name on the list must not lead to a private address; an address may."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._rules = rules_of(hosts)
        own = zip(hosts, self._rules, strict=True)
        self._reach = Reach([entry for entry, rule in own if rule.network is not None])
        self.refused: list[str] = []

    async def check(self, host: str, port: int) -> Sequence[str]:
        self._must_be_listed(host, port)
        return await self._reach.check(host, port)

    async def screen(self, host: str, port: int) -> None:
        self._must_be_listed(host, port)
        await self._reach.screen(host, port)

    def _must_be_listed(self, host: str, port: int) -> None:
        name = canonical(host)
        ip = literal(name)
        if not any(rule.names(name, port) or (ip and rule.holds(ip, port)) for rule in self._rules):
            self.refused = [*self.refused[-KEPT:], name]
            raise ProviderError("bad_request", f"{name} is not on the list: sandbox.hosts")


class Way:
    """The way out for the commands of one session: a socket in `folder`."""

    def __init__(self, folder: Path, hosts: Sequence[str], proxies: Proxies) -> None:
        self.folder, self._listed = folder, Listed(hosts)
        self._proxy = Proxy(self._listed.check, proxies=proxies, screen=self._listed.screen)

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

    def drain(self) -> list[str]:
        """The hosts that were refused since the last time this was asked."""
        found, self._listed.refused = list(dict.fromkeys(self._listed.refused)), []
        return found
