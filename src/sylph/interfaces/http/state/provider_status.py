"""Which model services answer: asked now and then, and not for each who wants to know."""

import asyncio
import time

from msgspec import Struct, field

from sylph.app import App
from sylph.interfaces.reports.service_probe import ProbedService, probe_services

PROBE_TIMEOUT = 5.0
MAX_AGE = 60.0


class ProviderStatusCache(Struct, kw_only=True):
    """What was heard last."""

    providers: list[ProbedService] = []
    checked_at: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get_providers(self, app: App, *, fresh: bool = False) -> list[ProbedService]:
        """Every service with its models. Who comes while they are asked waits for the same answer."""
        since = time.monotonic()
        async with self.lock:
            if self.checked_at < (since if fresh else since - MAX_AGE) or not self.checked_at:
                self.providers = await probe_services(app, seconds=PROBE_TIMEOUT)
                self.checked_at = time.monotonic()
            return self.providers

    def invalidate(self) -> None:
        self.checked_at = 0.0
