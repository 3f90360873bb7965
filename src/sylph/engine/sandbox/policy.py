"""What the user set up for all commands, and what one call may do."""

from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from sylph.core.permission.types import Effect
from sylph.net.url import Proxies

Network = Literal["judged", "off", "on", "hosts"]
NetworkAccess = Literal["none", "all", "hosts"]


class SandboxLimits(Struct, frozen=True, kw_only=True):
    """How much a command may use; 0 for as much as there is."""

    cpu: float = 0.0
    processes: int = 0
    files: int = 0
    file_size: int = 0
    """Bytes."""
    output: int = 10_000_000
    """Bytes of its output that are kept, half from the beginning and half from the end."""


class SandboxPolicy(Struct, frozen=True, kw_only=True):
    """The sandbox as it is set up. Nothing of it comes from a workspace, a tool or a command."""

    home: Path
    path: str = ""
    """Where commands are looked for."""
    guarded: tuple[Path, ...] = ()
    """Sylph's own folders and files: never to be seen."""
    network: Network = "judged"
    hosts: tuple[str, ...] = ()
    proxies: Proxies = field(default_factory=Proxies)
    """What the user's own way to the network is; `hosts` are reached by it."""
    hide: tuple[str, ...] = ()
    read: tuple[Path, ...] = ()
    caps: SandboxLimits = field(default_factory=SandboxLimits)
    layer: str = ""
    """Only this layer, for a proof; empty for the best one there is."""


class CommandRights(Struct, frozen=True, kw_only=True):
    """What one call was judged, and allowed, to do."""

    workspace: Path
    private: Path
    effect: Effect
    outside: bool = False
    """A person said yes to this one command leaving the sandbox."""
    off: bool = False
    """The user has switched the sandbox off for this session."""
    strict: bool = False
    """The mode of the session lets no command run unconfined."""

    @property
    def writes(self) -> bool:
        return self.effect != "read"


def network_access(network: Network, effect: Effect) -> NetworkAccess:
    """How far a command gets. What only looks has no business on the network, whatever is set."""
    if effect == "read" or network == "off":
        return "none"
    if network == "hosts":
        return "hosts"
    return "all" if network == "on" or effect == "external" else "none"
