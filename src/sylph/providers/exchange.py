"""One request to a service, with the key that is good now; once more with another, where a login can give one."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from sylph.core.errors import ProviderError
from sylph.net.http import Client
from sylph.net.wire import Response
from sylph.providers.endpoint import Endpoint
from sylph.providers.failures import failure, unreached

STREAM = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
READ = {"Accept": "application/json"}


async def post(
    stack: AsyncExitStack,
    client: Client,
    endpoint: Endpoint,
    path: str,
    body: bytes,
    headers: Mapping[str, str] = STREAM,
) -> Response:
    """The response, whatever its status; it ends with `stack`."""
    return await _send(stack, client, endpoint, (path, body), headers)


async def get(client: Client, endpoint: Endpoint, path: str, body: bytes | None = None) -> bytes:
    """The whole of a document, asked for with a `body` where that is how. Raises ProviderError where it is not 200."""
    async with AsyncExitStack() as stack:
        response = await _send(stack, client, endpoint, (path, body), READ)
        said = await response.read()
    if response.status != 200:
        raise failure(endpoint, "", said, status=response.status, headers=response.headers)
    return said


async def _send(
    stack: AsyncExitStack,
    client: Client,
    endpoint: Endpoint,
    what: tuple[str, bytes | None],
    headers: Mapping[str, str],
    stale: str = "",
) -> Response:
    path, body = what
    key = await endpoint.key(stale)
    url, opened = endpoint.url(path), {**headers, **endpoint.carrying(key)}
    asked = (
        client.get(url, headers=opened, timeouts=endpoint.timeouts)
        if body is None
        else client.post(url, body, headers=opened, timeouts=endpoint.timeouts)
    )
    try:
        response = await stack.enter_async_context(asked)
    except ProviderError as error:
        raise unreached(error) from error
    if response.status == 401 and endpoint.login is not None and not stale:
        return await _send(stack, client, endpoint, what, headers, key)
    return response
