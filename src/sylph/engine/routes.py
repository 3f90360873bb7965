"""Which model does what: roles, and where to turn when one does not answer."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core.errors import PASSING, NoModel, ProviderError, Trouble
from sylph.core.provider import ModelInfo, Request
from sylph.engine.gateway import Gateway
from sylph.engine.history import CHARS_PER_TOKEN
from sylph.engine.summary import Summary

MAIN, FALLBACK = "main", "fallback"
# Tokens that an answer should have room for.
ANSWER = 1_000
ROLES = (MAIN, "scout", "judge", "background", "embed", FALLBACK)
# Roles that nobody else fills.
ALONE = ("embed", FALLBACK)
# Another service may do better at these. Whatever else goes wrong, somebody has to change something first:
# a key, a name, the request; a model that refuses is not gone around.
ELSEWHERE = PASSING | {"breaker_open"}


class Choice(Struct, frozen=True):
    """Where to turn, empty for nowhere, and what was passed over, with the reason."""

    to: str = ""
    passed: dict[str, str] = {}


class Routing(Protocol):
    def model(self, role: str, summary: Summary) -> str:
        """The model of a role in this session."""
        ...

    def elsewhere(self, gateway: Gateway, request: Request, summary: Summary) -> Choice:
        """Who could answer in place of the model that failed."""
        ...


class Routes(Struct, frozen=True, kw_only=True):
    """As it is configured; what the session says counts first."""

    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    fallback: tuple[str, ...] = ()

    def model(self, role: str, summary: Summary) -> str:
        if role == MAIN:
            return summary.substitute or summary.model
        return summary.roles.get(role) or self.roles.get(role) or summary.model

    def elsewhere(self, gateway: Gateway, request: Request, summary: Summary) -> Choice:
        wanted: Sequence[str] = [summary.roles[FALLBACK]] if FALLBACK in summary.roles else self.fallback
        passed: dict[str, str] = {}
        for model in wanted:
            if model in (summary.model, summary.substitute, *summary.fallen):
                continue
            why = unfit(gateway, model, request)
            if not why:
                return Choice(model, passed)
            passed[model] = why
        return Choice(passed=passed)


def unfit(gateway: Gateway, model: str, request: Request) -> str:
    """Why a model cannot take a request over whole; empty if it can. Nothing is left out to make it fit."""
    try:
        info = gateway.info(model)
    except NoModel:
        return "there is no such provider"
    if request.tools and info.calls is False:
        return "it takes no tools"
    if not info.sees and any(message.images for message in request.messages):
        return "it is not known to take images"
    return _too_long(gateway, model, info, request)


def _too_long(gateway: Gateway, model: str, info: ModelInfo, request: Request) -> str:
    """Held against all that would be sent, tools included, with some room for the answer."""
    if not info.window:
        return ""
    provider, bare = gateway.find(model)
    said = len(provider.body(replace(request, model=bare))) // CHARS_PER_TOKEN
    return f"its window of {info.window:,} tokens is too small" if said + ANSWER > info.window else ""


def nowhere(error: ProviderError, choice: Choice) -> ProviderError:
    """The same failure, with what was passed over and why."""
    if not choice.passed:
        return error
    told = ", ".join(f"{model} ({why})" for model, why in choice.passed.items())
    said = f"{error} No fallback could take over: {told}."
    failure = ProviderError(error.failure, said)
    failure.trouble = Trouble(error.trouble.kind, said, error.trouble.details, error.trouble.next)
    return failure
