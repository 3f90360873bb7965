"""A service as configuration: where it is, how to log in, and what is known of its models."""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core.provider import ModelInfo
from sylph.net.http_client import HttpTimeouts
from sylph.net.url import is_loopback
from sylph.providers.model_list_cache import ModelListCache

MIN_SECRET_LENGTH = 8


class TokenSource(Protocol):
    """A way in that has to be kept fresh. Refreshing happens once, however many ask."""

    async def get_token(self) -> str:
        """A token that is good now. Raises ProviderError("auth") where the person has to log in again."""
        ...

    async def renew_token(self, stale: str) -> str:
        """Another one, for a service that did not take `stale`."""
        ...

    @property
    def last_token(self) -> str:
        """The token that was given out last, so that it can be kept out of messages."""
        ...


class Endpoint(Struct, frozen=True, kw_only=True):
    """One service. `key_from` tells people where the key is set; what `local` serves is free of charge."""

    name: str
    base_url: str
    dialect: str = "chat"
    """Which wire language it speaks: a name in `speak.DIALECTS`."""
    login: TokenSource | None = None
    """Where it is not a fixed key that opens the door."""
    api_key: str = ""
    key_from: str = ""
    elsewhere: str = ""
    """That a key is kept, but for another address; with `back`, the step that leads there again."""
    back: str = ""
    key_header: str = ""
    """The header that carries the key, where it is not `Authorization: Bearer`."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    quirks: frozenset[str] = frozenset()
    """What it takes or minds beside its dialect: see `table.Quirk`."""
    websocket: bool = False
    is_official: bool = True
    """Whether this is the vendor's own address, and not a server that claims to speak like it."""
    timeouts: HttpTimeouts = field(default_factory=HttpTimeouts)
    models: Mapping[str, ModelInfo] = field(default_factory=dict[str, ModelInfo])
    local: bool = False
    model_list_cache: ModelListCache | None = None
    """What it last said of its models."""

    def __repr__(self) -> str:
        """Names it, and keeps its key and headers to itself."""
        return f"Endpoint({self.name!r}, {self.base_url!r})"

    async def resolve_key(self, stale: str = "") -> str:
        """What opens the door now; another one where `stale` did not. Empty where nothing is needed."""
        if self.login is None:
            return self.api_key.strip()
        return await (self.login.renew_token(stale) if stale else self.login.get_token())

    async def auth_headers(self, stale: str = "") -> dict[str, str]:
        """The headers that let us in now: the key, and what is configured."""
        return self.headers_with_key(await self.resolve_key(stale))

    def headers_with_key(self, key: str) -> dict[str, str]:
        """The headers of a request with this key."""
        if not key:
            return dict(self.headers)
        name, value = (self.key_header, key) if self.key_header else ("Authorization", f"Bearer {key}")
        return {name: value, **self.headers}

    def redact_key(self, text: str) -> str:
        """What somebody said, without the key that was sent to them."""
        for key in (self.api_key, self.login.last_token if self.login else ""):
            # A stand-in such as `x` or `none` is no secret, and would be found inside of words.
            text = text.replace(key, "[key]") if len(key) >= MIN_SECRET_LENGTH else text
        return text

    def url_for(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"

    def model_info(self, model: str, learned: ModelInfo | None = None) -> ModelInfo:
        """What is configured, else what the service said of the model, else what the catalogue has of it."""
        listed = _find_in_catalogue(self.name, model)
        if listed and (self.local or not self.is_official):
            # The same model, as its name says, but nobody knows what it costs there.
            listed = ModelInfo(name=model, window=listed.window, sees=listed.sees, calls=listed.calls)
        last = self.model_list_cache.find_model(model) if self.model_list_cache and learned is None else None
        known = _merge_model_info(model, self.models.get(model), learned, last, listed)
        if not self.local:
            return known
        return replace(
            known,
            price_in=known.price_in or 0,
            price_out=known.price_out or 0,
            # Of a model that costs something, a price that nobody told is not known to be nothing.
            price_cached=known.price_cached if known.price_in else known.price_cached or 0,
        )


def _find_in_catalogue(provider: str, model: str) -> ModelInfo | None:
    # Read when a service in the net is asked: most of what runs on this machine is not in there.
    from sylph.providers import catalogue

    return catalogue.find_model_info(provider, model)


def _merge_model_info(model: str, *known: ModelInfo | None) -> ModelInfo:
    """Each fact from the first who knows it."""
    told = [each for each in known if each]
    if len(told) <= 1:
        return told[0] if told else ModelInfo(name=model)
    facts = (name for name in ModelInfo.__struct_fields__ if name != "name")
    found = {name: next((value for each in told if (value := getattr(each, name)) is not None), None) for name in facts}
    return ModelInfo(name=model, **found)


def on_this_machine(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")
