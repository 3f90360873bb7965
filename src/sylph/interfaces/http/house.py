"""What every route holds: the built program, and what the server adds to it."""

import asyncio
import time
from pathlib import Path

from msgspec import Struct, field

from sylph.app import App
from sylph.interfaces.http.access.rates import Attempts, Rate
from sylph.interfaces.http.address import Address
from sylph.interfaces.http.counts import Counts
from sylph.interfaces.http.idempotency import Once
from sylph.interfaces.http.keys import Keys
from sylph.interfaces.http.live.hub import Hub
from sylph.interfaces.http.memory import Memory
from sylph.interfaces.http.services import Services
from sylph.interfaces.http.tally import Tally
from sylph.reload import Live


class House(Struct, frozen=True, kw_only=True):
    app: App
    keys: Keys
    hub: Hub
    once: Once
    workspace: Path
    """Where sessions work that name no folder: where the server was started."""
    address: Address = Address()
    """Where it is reached by others than its owner."""
    attempts: Attempts = field(default_factory=Attempts)
    """To log in: counted for all who try."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends: streams end then, too."""
    started: float = field(default_factory=time.time)
    live: Live
    """Keeps the program up to its configuration."""
    services: Services = field(default_factory=Services)
    """What the model services said last."""
    counts: Counts = field(default_factory=Counts)
    """What was served since the start."""
    tally: Tally = field(default_factory=Tally)
    """What the log says was done, as far as it was read."""
    reports: Rate = field(default_factory=lambda: Rate(0.5, 30))
    """Of errors in browsers: some, and not all the time."""
    editing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever changes a file of the user's."""
    files: Memory = field(default_factory=Memory)
