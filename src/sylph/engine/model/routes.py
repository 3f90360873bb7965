"""Which model does what: roles, and where to turn when one does not answer."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core.errors import RETRYABLE_FAILURES, ErrorReport, NoModel, ProviderError
from sylph.core.provider import ModelInfo, ModelRequest
from sylph.engine.folds.history import CHARS_PER_TOKEN
from sylph.engine.folds.session_state import SessionState
from sylph.engine.model.gateway import ModelGateway

MAIN, FALLBACK = "main", "fallback"
# Tokens that an answer should have room for.
ANSWER_TOKENS = 1_000
ROLES = (MAIN, "scout", "judge", "background", "embed", FALLBACK)
# Roles that nobody else fills.
UNSHARED_ROLES = ("embed", FALLBACK)
# Another service may do better at these. Whatever else goes wrong, somebody has to change something first:
# a key, a name, the request; a model that refuses is not gone around.
FALLBACK_FAILURES = RETRYABLE_FAILURES | {"breaker_open"}


class FallbackChoice(Struct, frozen=True):
    """Where to turn, empty for nowhere, and what was passed over, with the reason."""

    to: str = ""
    passed: dict[str, str] = {}


class ModelRouter(Protocol):
    def model_for(self, role: str, summary: SessionState) -> str:
        """The model of a role in this session."""
        ...

    def choose_fallback(self, gateway: ModelGateway, request: ModelRequest, summary: SessionState) -> FallbackChoice:
        """Who could answer in place of the model that failed."""
        ...


class ConfiguredRoutes(Struct, frozen=True, kw_only=True):
    """As it is configured; what the session says counts first."""

    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    fallback: tuple[str, ...] = ()

    def model_for(self, role: str, summary: SessionState) -> str:
        if role == MAIN:
            return summary.substitute or summary.model
        return summary.roles.get(role) or self.roles.get(role) or summary.model

    def choose_fallback(self, gateway: ModelGateway, request: ModelRequest, summary: SessionState) -> FallbackChoice:
        wanted: Sequence[str] = [summary.roles[FALLBACK]] if FALLBACK in summary.roles else self.fallback
        passed: dict[str, str] = {}
        for model in wanted:
            if model in (summary.model, summary.substitute, *summary.fallen):
                continue
            why = unfit_reason(gateway, model, request)
            if not why:
                return FallbackChoice(model, passed)
            passed[model] = why
        return FallbackChoice(passed=passed)


def unfit_reason(gateway: ModelGateway, model: str, request: ModelRequest) -> str:
    """Why a model cannot take a request over whole; empty if it can. Nothing is left out to make it fit."""
    try:
        info = gateway.model_info(model)
    except NoModel:
        return "there is no such provider"
    if request.tools and info.calls is False:
        return "it takes no tools"
    if not info.sees and any(message.images for message in request.messages):
        return "it is not known to take images"
    return _window_reason(gateway, model, info, request)


def _window_reason(gateway: ModelGateway, model: str, info: ModelInfo, request: ModelRequest) -> str:
    """Held against all that would be sent, tools included, with some room for the answer."""
    if not info.window:
        return ""
    provider, bare = gateway.find_provider(model)
    said = len(provider.body(replace(request, model=bare))) // CHARS_PER_TOKEN
    return f"its window of {info.window:,} tokens is too small" if said + ANSWER_TOKENS > info.window else ""


def no_fallback_error(error: ProviderError, choice: FallbackChoice) -> ProviderError:
    """The same failure, with what was passed over and why."""
    if not choice.passed:
        return error
    told = ", ".join(f"{model} ({why})" for model, why in choice.passed.items())
    said = f"{error} No fallback could take over: {told}."
    failure = ProviderError(error.failure, said)
    failure.trouble = ErrorReport(error.trouble.kind, said, error.trouble.details, error.trouble.next)
    return failure
