"""Which module speaks which dialect. One is imported when a service that speaks it is first asked, and not before."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Literal

from sylph.core.errors import ProviderError
from sylph.core.provider import Provider
from sylph.net.http_client import HttpClient
from sylph.providers.endpoint import Endpoint

Dialect = Literal["chat", "responses", "anthropic", "gemini", "ollama", "bedrock", "local"]
DIALECTS: Mapping[str, tuple[str, str]] = {
    "chat": ("sylph.providers.dialects.openai_chat.provider", "OpenAIChatProvider"),
    "local": ("sylph.providers.local.provider", "LocalProvider"),
    "anthropic": ("sylph.providers.dialects.anthropic.provider", "AnthropicProvider"),
    "gemini": ("sylph.providers.dialects.gemini.provider", "GeminiProvider"),
    "bedrock": ("sylph.providers.dialects.bedrock.provider", "BedrockProvider"),
    "ollama": ("sylph.providers.dialects.ollama.provider", "OllamaProvider"),
    "responses": ("sylph.providers.dialects.openai_responses.provider", "OpenAIResponsesProvider"),
}


def create_provider(endpoint: Endpoint, client: HttpClient) -> Provider:
    """The service, in its own dialect."""
    if endpoint.dialect not in DIALECTS:
        raise ProviderError("bad_request", f"{endpoint.name} speaks {endpoint.dialect!r}, which Sylph does not yet.")
    module, name = DIALECTS[endpoint.dialect]
    return getattr(import_module(module), name)(endpoint, client)


class ProviderRegistry(Mapping[str, Provider]):
    """The services by name, each made when it is first asked for."""

    def __init__(self, endpoints: Sequence[Endpoint], client: HttpClient, *made: Provider) -> None:
        self._endpoints, self._client = {each.name: each for each in endpoints}, client
        self._made = {each.name: each for each in made}

    def __getitem__(self, name: str) -> Provider:
        if name not in self._made:
            self._made[name] = create_provider(self._endpoints[name], self._client)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._made, **self._endpoints})

    def __len__(self) -> int:
        return len({**self._made, **self._endpoints})
