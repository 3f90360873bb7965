"""A service as configuration: where it is, how to log in, and what is known of its models."""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core.provider import ModelInfo
from sylph.net.address import is_loopback
from sylph.net.http import Timeouts
from sylph.providers.kept import Kept

SECRET = 8


class Login(Protocol):
    """A way in that has to be kept fresh. Refreshing happens once, however many ask."""

    async def token(self) -> str:
        """A token that is good now. Raises ProviderError("auth") where the person has to log in again."""
        ...

    async def renewed(self, stale: str) -> str:
        """Another one, for a service that did not take `stale`."""
        ...

    @property
    def given(self) -> str:
        """The token that was given out last, so that it can be kept out of messages."""
        ...


class Endpoint(Struct, frozen=True, kw_only=True):
    """One service. `key_from` tells people where the key is set; what `local` serves is free of charge."""

    name: str
    base_url: str
    dialect: str = "chat"
    """Which wire language it speaks: a name in `speak.DIALECTS`."""
    login: Login | None = None
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
    own: bool = True
    """Whether this is the vendor's own address, and not a server that claims to speak like it."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    models: Mapping[str, ModelInfo] = field(default_factory=dict[str, ModelInfo])
    local: bool = False
    kept: Kept | None = None
    """What it last said of its models."""

    def __repr__(self) -> str:
        """Names it, and keeps its key and headers to itself."""
        return f"Endpoint({self.name!r}, {self.base_url!r})"

    async def key(self, stale: str = "") -> str:
        """What opens the door now; another one where `stale` did not. Empty where nothing is needed."""
        if self.login is None:
            return self.api_key.strip()
        return await (self.login.renewed(stale) if stale else self.login.token())

    async def opened(self, stale: str = "") -> dict[str, str]:
        """The headers that let us in now: the key, and what is configured."""
        return self.carrying(await self.key(stale))

    def carrying(self, key: str) -> dict[str, str]:
        """The headers of a request with this key."""
        if not key:
            return dict(self.headers)
        name, value = (self.key_header, key) if self.key_header else ("Authorization", f"Bearer {key}")
        return {name: value, **self.headers}

    def without_key(self, text: str) -> str:
        """What somebody said, without the key that was sent to them."""
        for key in (self.api_key, self.login.given if self.login else ""):
            # A stand-in such as `x` or `none` is no secret, and would be found inside of words.
            text = text.replace(key, "[key]") if len(key) >= SECRET else text
        return text

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"

    def info(self, model: str, learned: ModelInfo | None = None) -> ModelInfo:
        """What is configured, else what the service said of the model, else what the catalogue has of it."""
        listed = _listed(self.name, model)
        if listed and (self.local or not self.own):
            # The same model, as its name says, but nobody knows what it costs there.
            listed = ModelInfo(name=model, window=listed.window, sees=listed.sees, calls=listed.calls)
        last = self.kept.find(model) if self.kept and learned is None else None
        known = _filled(model, self.models.get(model), learned, last, listed)
        if not self.local:
            return known
        return replace(
            known,
            price_in=known.price_in or 0,
            price_out=known.price_out or 0,
            # Of a model that costs something, a price that nobody told is not known to be nothing.
            price_cached=known.price_cached if known.price_in else known.price_cached or 0,
        )


def _listed(provider: str, model: str) -> ModelInfo | None:
    # Read when a service in the net is asked: most of what runs on this machine is not in there.
    from sylph.providers import catalogue

    return catalogue.find(provider, model)


def _filled(model: str, *known: ModelInfo | None) -> ModelInfo:
    """Each fact from the first who knows it."""
    told = [each for each in known if each]
    if len(told) <= 1:
        return told[0] if told else ModelInfo(name=model)
    facts = (name for name in ModelInfo.__struct_fields__ if name != "name")
    found = {name: next((value for each in told if (value := getattr(each, name)) is not None), None) for name in facts}
    return ModelInfo(name=model, **found)


def on_this_machine(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")
