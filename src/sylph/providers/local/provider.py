"""The provider `local`: models on this machine; the first question to one of them starts its runtime."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, ModelInfo, Request
from sylph.net.http import Client
from sylph.providers.local.lease import Lease
from sylph.providers.local.models import LocalEndpoint, LocalModel, absent
from sylph.providers.local.runtimes import Address, borrow
from sylph.providers.openai_chat import OpenAIChat


class _Kept(Struct, frozen=True):
    """A runtime that has nothing to do now, and when we let go of it."""

    lease: Lease
    timer: asyncio.TimerHandle


class Local:
    """Each model's runtime is held from the first question until it was idle for long enough, or until the end."""

    def __init__(self, endpoint: LocalEndpoint, client: Client) -> None:
        self._endpoint, self._client = endpoint, client
        self._words = OpenAIChat(endpoint, client)
        self._kept: dict[str, _Kept] = {}
        self._closed = False

    @property
    def name(self) -> str:
        return self._endpoint.name

    def body(self, request: Request) -> bytes:
        return self._words.body(request)

    async def stream(self, request: Request, body: bytes) -> AsyncGenerator[Chunk, None]:
        async with self._held(self._find(request.model)) as address:
            there = replace(self._endpoint, base_url=f"{address.url}/v1", api_key=address.key)
            chunks = OpenAIChat(there, self._client).stream(request, body)
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()

    async def models(self) -> tuple[ModelInfo, ...]:
        return tuple(self.info(name) for name in self._endpoint.models)

    def info(self, model: str) -> ModelInfo:
        return self._endpoint.info(model)

    async def close(self) -> None:
        self._closed = True
        for name in tuple(self._kept):
            self._drop(name)

    def _find(self, name: str) -> LocalModel:
        found = self._endpoint.models.get(name)
        if isinstance(found, LocalModel):
            return found
        missing = absent(name, self._endpoint)
        raise ProviderError("not_found", str(missing), next=missing.trouble.next)

    @asynccontextmanager
    async def _held(self, model: LocalModel) -> AsyncGenerator[Address]:
        # Asked anew each time: a runtime that has died is started again, and one that lives costs a look at a file.
        address, lease = await borrow(self._endpoint, model)
        try:
            yield address
        finally:
            self._rest(model.name, lease)

    def _rest(self, name: str, lease: Lease) -> None:
        """Holds the runtime a while longer, in case that another question comes."""
        self._drop(name)
        if self._closed:
            lease.drop()
            return
        timer = asyncio.get_running_loop().call_later(self._endpoint.idle_seconds, self._drop, name)
        self._kept[name] = _Kept(lease, timer)

    def _drop(self, name: str) -> None:
        if kept := self._kept.pop(name, None):
            kept.timer.cancel()
            kept.lease.drop()
