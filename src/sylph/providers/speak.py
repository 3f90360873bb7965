"""Which module speaks which dialect. One is imported when a service that speaks it is first asked, and not before."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Literal

from sylph.core.errors import ProviderError
from sylph.core.provider import Provider
from sylph.net.http import Client
from sylph.providers.endpoint import Endpoint

Dialect = Literal["chat", "responses", "anthropic", "gemini", "ollama", "bedrock", "local"]
DIALECTS: Mapping[str, tuple[str, str]] = {
    "chat": ("sylph.providers.openai_chat", "OpenAIChat"),
    "local": ("sylph.providers.local.provider", "Local"),
    "anthropic": ("sylph.providers.anthropic", "Anthropic"),
    "gemini": ("sylph.providers.gemini", "Gemini"),
    "bedrock": ("sylph.providers.bedrock", "Bedrock"),
    "ollama": ("sylph.providers.ollama", "Ollama"),
    "responses": ("sylph.providers.openai_responses", "OpenAIResponses"),
}


def speak(endpoint: Endpoint, client: Client) -> Provider:
    """The service, in its own dialect."""
    if endpoint.dialect not in DIALECTS:
        raise ProviderError("bad_request", f"{endpoint.name} speaks {endpoint.dialect!r}, which Sylph does not yet.")
    module, name = DIALECTS[endpoint.dialect]
    return getattr(import_module(module), name)(endpoint, client)


class Spoken(Mapping[str, Provider]):
    """The services by name, each made when it is first asked for."""

    def __init__(self, endpoints: Sequence[Endpoint], client: Client, *made: Provider) -> None:
        self._endpoints, self._client = {each.name: each for each in endpoints}, client
        self._made = {each.name: each for each in made}

    def __getitem__(self, name: str) -> Provider:
        if name not in self._made:
            self._made[name] = speak(self._endpoints[name], self._client)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._made, **self._endpoints})

    def __len__(self) -> int:
        return len({**self._made, **self._endpoints})
