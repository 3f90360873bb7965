"""The provider `local`: models on this machine; the first question to one of them starts its runtime."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, ModelInfo, ModelRequest
from sylph.net.http_client import HttpClient
from sylph.providers.dialects.openai_chat.provider import OpenAIChatProvider
from sylph.providers.local.file_lease import FileLease
from sylph.providers.local.models import LocalEndpoint, LocalModelInfo, missing_model_error
from sylph.providers.local.runtime_process import RuntimeAddress, borrow_runtime


class _IdleRuntime(Struct, frozen=True):
    """A runtime that has nothing to do now, and when we let go of it."""

    lease: FileLease
    timer: asyncio.TimerHandle


class LocalProvider:
    """Each model's runtime is held from the first question until it was idle for long enough, or until the end."""

    def __init__(self, endpoint: LocalEndpoint, client: HttpClient) -> None:
        self._endpoint, self._client = endpoint, client
        self._words = OpenAIChatProvider(endpoint, client)
        self._kept: dict[str, _IdleRuntime] = {}
        self._closed = False

    @property
    def name(self) -> str:
        return self._endpoint.name

    def body(self, request: ModelRequest) -> bytes:
        return self._words.body(request)

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        async with self._borrow_runtime(self._find_model(request.model)) as address:
            there = replace(self._endpoint, base_url=f"{address.url}/v1", api_key=address.key)
            chunks = OpenAIChatProvider(there, self._client).stream(request, body)
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()

    async def models(self) -> tuple[ModelInfo, ...]:
        return tuple(self.info(name) for name in self._endpoint.models)

    def info(self, model: str) -> ModelInfo:
        return self._endpoint.model_info(model)

    async def close(self) -> None:
        self._closed = True
        for name in tuple(self._kept):
            self._drop_runtime(name)

    def _find_model(self, name: str) -> LocalModelInfo:
        found = self._endpoint.models.get(name)
        if isinstance(found, LocalModelInfo):
            return found
        missing = missing_model_error(name, self._endpoint)
        raise ProviderError("not_found", str(missing), next=missing.trouble.next)

    @asynccontextmanager
    async def _borrow_runtime(self, model: LocalModelInfo) -> AsyncGenerator[RuntimeAddress]:
        # Asked anew each time: a runtime that has died is started again, and one that lives costs a look at a file.
        address, lease = await borrow_runtime(self._endpoint, model)
        try:
            yield address
        finally:
            self._keep_idle(model.name, lease)

    def _keep_idle(self, name: str, lease: FileLease) -> None:
        """Holds the runtime a while longer, in case that another question comes."""
        self._drop_runtime(name)
        if self._closed:
            lease.release()
            return
        timer = asyncio.get_running_loop().call_later(self._endpoint.idle_seconds, self._drop_runtime, name)
        self._kept[name] = _IdleRuntime(lease, timer)

    def _drop_runtime(self, name: str) -> None:
        if kept := self._kept.pop(name, None):
            kept.timer.cancel()
            kept.lease.release()
