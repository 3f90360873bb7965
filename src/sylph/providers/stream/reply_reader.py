"""What every dialect does around its words: listen until all is said, and tell which model may have been meant."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from sylph.core.errors import ProviderError
from sylph.core.provider import Chunk, ModelInfo
from sylph.net.http_connection import HttpResponse
from sylph.providers.vendors import model_ranking

# A stream that has said all should end now; this long we wait for it, to use its connection again.
LINGER = 0.25
SUGGEST_SECONDS = 2.0


class ReplyStream(Protocol):
    """An answer as it comes in: bytes are fed, chunks come out, and `close` ends with the reply."""

    @property
    def done(self) -> bool:
        """Whether nothing more is to come."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the answer is all there, whatever happens to the connection now."""
        ...

    def feed(self, piece: bytes) -> list[Chunk]: ...


async def read_chunks(response: HttpResponse, heard: ReplyStream) -> AsyncGenerator[Chunk, None]:
    """What a body says, up to its end. One that breaks off when all is said does no harm."""
    try:
        async for piece in response:
            for chunk in heard.feed(piece):
                yield chunk
            if heard.done:
                await response.drain(LINGER)
                return
    except ProviderError as error:
        if error.failure != "cut" or not heard.complete:
            raise


class ModelLister(Protocol):
    @property
    def name(self) -> str: ...
    async def models(self) -> tuple[ModelInfo, ...]: ...


async def suggest_models(service: ModelLister, model: str, error: ProviderError) -> ProviderError:
    """The same error, with the models whose names come close. None of them is ever taken instead."""
    if error.failure != "not_found":
        return error
    try:
        async with asyncio.timeout(SUGGEST_SECONDS):
            known = [info.name for info in await service.models()]
    except ProviderError as other:
        # Where not even the list is found, it is not about the model.
        return other if other.failure in ("not_found", "format") else error
    except TimeoutError:
        return error
    if model in known:
        return ProviderError(
            "not_found",
            f"{service.name} lists {model}, but has nothing at the path where this dialect asks for it: {error}",
            status=error.status,
            next=[f"another dialect may be there: sylph models {model}", *error.trouble.next[1:]],
        )
    near = model_ranking.close_matches(model, known) or known[:5]
    hint = [f"Did you mean {' or '.join(f'{service.name}/{name}' for name in near)}?"] if near else []
    return ProviderError("not_found", str(error), status=error.status, next=[*hint, *error.trouble.next])
