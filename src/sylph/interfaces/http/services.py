"""Which model services answer: asked now and then, and not for each who wants to know."""

import asyncio
import time

from msgspec import Struct, field

from sylph.app import App
from sylph.interfaces.reach import Reached, reach

SECONDS = 5.0
FRESH = 60.0


class Services(Struct, kw_only=True):
    """What was heard last."""

    found: list[Reached] = []
    at: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def heard(self, app: App, *, fresh: bool = False) -> list[Reached]:
        """Every service with its models. Who comes while they are asked waits for the same answer."""
        since = time.monotonic()
        async with self.asking:
            if self.at < (since if fresh else since - FRESH) or not self.at:
                self.found = await reach(app, seconds=SECONDS)
                self.at = time.monotonic()
            return self.found

    def forget(self) -> None:
        self.at = 0.0
