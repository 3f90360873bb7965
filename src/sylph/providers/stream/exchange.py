"""One request to a service, with the key that is good now; once more with another, where a login can give one."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from sylph.core.errors import ProviderError
from sylph.net.http_client import HttpClient
from sylph.net.http_connection import HttpResponse
from sylph.providers.endpoint import Endpoint
from sylph.providers.vendor_errors import add_network_advice, error_from_response

STREAM_HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
READ_HEADERS = {"Accept": "application/json"}


async def post_request(
    stack: AsyncExitStack,
    client: HttpClient,
    endpoint: Endpoint,
    path: str,
    body: bytes,
    headers: Mapping[str, str] = STREAM_HEADERS,
) -> HttpResponse:
    """The response, whatever its status; it ends with `stack`."""
    return await _send_request(stack, client, endpoint, (path, body), headers)


async def fetch_document(client: HttpClient, endpoint: Endpoint, path: str, body: bytes | None = None) -> bytes:
    """The whole of a document, asked for with a `body` where that is how. Raises ProviderError where it is not 200."""
    async with AsyncExitStack() as stack:
        response = await _send_request(stack, client, endpoint, (path, body), READ_HEADERS)
        said = await response.read()
    if response.status != 200:
        raise error_from_response(endpoint, "", said, status=response.status, headers=response.headers)
    return said


async def _send_request(
    stack: AsyncExitStack,
    client: HttpClient,
    endpoint: Endpoint,
    what: tuple[str, bytes | None],
    headers: Mapping[str, str],
    stale: str = "",
) -> HttpResponse:
    path, body = what
    key = await endpoint.resolve_key(stale)
    url, opened = endpoint.url_for(path), {**headers, **endpoint.headers_with_key(key)}
    asked = (
        client.get(url, headers=opened, timeouts=endpoint.timeouts)
        if body is None
        else client.post(url, body, headers=opened, timeouts=endpoint.timeouts)
    )
    try:
        response = await stack.enter_async_context(asked)
    except ProviderError as error:
        raise add_network_advice(error) from error
    if response.status == 401 and endpoint.login is not None and not stale:
        return await _send_request(stack, client, endpoint, what, headers, key)
    return response
