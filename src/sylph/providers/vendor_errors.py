"""What a service's complaint means: statuses and error objects of many vendors as failures the gateway knows."""

import calendar
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from sylph.core.errors import FailureKind, ProviderError
from sylph.core.text.formatting import first_line
from sylph.providers.endpoint import Endpoint

# Patterns, for upper and lower case alike, compiled when first needed.
# This one in the order: OpenAI and vLLM; llama.cpp; Ollama; LM Studio; Anthropic; Bedrock; Groq and Cerebras; xAI,
# Moonshot, Qwen, Together, Copilot; what others say.
OVERFLOW = (
    r"context_length_exceeded|maximum context length|longer than the maximum model length"
    r"|exceed_context_size|exceeds? the available context size|context size (has been )?exceeded"
    r"|exceed(s|ed)? (the )?(max(imum)? )?context|prompt (is )?too long|input length exceeds"
    r"|context the overflows|greater than the context length|context length of only"
    r"|exceed context limit|input is too long|input tokens exceeded"
    r"|reduce the length of the (messages|prompt|input)"
    r"|maximum prompt length|exceeded model token limit|range of input length|tokens \+ .?max_new_tokens"
    r"|prompt token count of"
    r"|context window|too many (input )?tokens|input token count"
)
OUT_OF_CREDIT = (
    r"insufficient_quota|billing|exceeded your current quota|insufficient (balance|credit)|credit balance is too low"
    r"|reached your specified api usage limits|payment required|out of credits"
)
REFUSED = (
    r"content_filter|content_policy|content management policy|content filtering policy|prohibited_content"
    r"|data_inspection_failed|new_sensitive|content exists risk|blocked by (the |our )?(content|safety)"
    r"|invalid_prompt|flagged as potentially violating"
)
# How long to wait, where only the words tell.
RETRY_HINT = r"try again in ([\d.]+ ?(?:ms|[smh])(?:[\d.]+s)?)"
# Vendors that answer 400 to a key or a model that they do not know.
BAD_KEY = (
    r"api_key_invalid|api key (not valid|expired|not found)|security token included in the request is (invalid|expired)"
)
NO_MODEL = (
    r"model identifier is invalid|is not found for api version|model_not_found|on-demand throughput isn.t supported"
    r"|model .{0,80}(does not exist|not found)"
)

BY_STATUS: Mapping[int, FailureKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    413: "overflow",
    424: "server_error",
    429: "rate_limited",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
# Error objects inside a stream carry no status, only words.
BY_WORD: tuple[tuple[str, FailureKind], ...] = (
    (r"rate.?limit|too many requests|throttl|resource_exhausted|quota", "rate_limited"),
    (r"overloaded|at capacity|unavailable|not.?ready", "overloaded"),
    (r"time(d)?.?out|deadline_exceeded", "timeout"),
    (r"authentication|permission|invalid_api_key|unauthenticated|access.?denied|expired.?token", "auth"),
    (r"not.?found", "not_found"),
    (r"invalid_request|invalid_argument|validation.?exception|failed_precondition", "bad_request"),
)
# What some vendors call a bad request although it is something else.
BY_WORD_400: tuple[tuple[str, FailureKind], ...] = (
    (BAD_KEY, "auth"),
    (r"throttl|quota.?exceeded", "rate_limited"),
    (NO_MODEL, "not_found"),
)
HEADLINE: Mapping[FailureKind, str] = {
    "auth": "{name} does not accept the key",
    "not_found": "{name} does not know {model}",
    "rate_limited": "{name} asks for a pause",
    "overloaded": "{name} is overloaded",
    "timeout": "{name} took too long",
    "overflow": "The conversation is longer than {model} can read",
    "refusal": "{name} declined to answer",
    "server_error": "{name} failed",
    "bad_request": "{name} refused the request",
}
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Detail(msgspec.Struct):
    """Of Google's: why, and when to come back."""

    reason: str | None = None
    retryDelay: str | None = None


class _Error(msgspec.Struct):
    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    status: str | int | None = None
    details: Any = None


class _ErrorBody(msgspec.Struct, rename={"message2": "Message", "kind": "__type"}):
    error: _Error | str | None = None
    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    detail: Any = None
    # Amazon's words for the same.
    message2: str | None = None
    kind: str | None = None
    status: str | int | None = None
    details: Any = None


class VendorComplaint(NamedTuple):
    """What the service says is wrong: its words, and the code it gives them."""

    message: str
    code: str = ""
    retry: float | None = None
    """The seconds that it asks to wait in its very words."""

    def matches(self, pattern: str) -> bool:
        return re.search(pattern, f"{self.code} {self.message}", re.IGNORECASE) is not None


def parse_complaint(body: bytes) -> VendorComplaint:
    """The message in whatever shape the service wraps it; else the first of what it sent."""
    try:
        found = msgspec.json.decode(body, type=_ErrorBody | list[_ErrorBody])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return VendorComplaint(body_excerpt(body))
    said = found if isinstance(found, _ErrorBody) else found[0] if found else _ErrorBody()
    if isinstance(said.error, str):
        return VendorComplaint(said.error)
    error = said.error or said
    details = _convert_details(error.details)
    parts = (error.code, error.type, error.status, said.kind, *(each.reason for each in details))
    code = " ".join(str(part) for part in parts if part)
    detail = "" if said.detail is None else body_excerpt(msgspec.json.encode(said.detail)).strip('"')
    message = error.message or said.message2 or detail or body_excerpt(body)
    retry = next((_parse_duration(each.retryDelay) for each in details if each.retryDelay), None)
    return VendorComplaint(message, code, _parse_retry_hint(message) if retry is None else retry)


def _parse_retry_hint(message: str) -> float | None:
    found = re.search(RETRY_HINT, message, re.IGNORECASE)
    return _parse_duration(found[1].replace(" ", "")) if found else None


def _convert_details(said: object) -> list[_Detail]:
    try:
        return msgspec.convert(said, list[_Detail], strict=False)
    except msgspec.ValidationError:
        return []


def error_from_response(
    endpoint: Endpoint, model: str, body: bytes, *, status: int = 0, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error to raise for a response with this status, or for an error object inside a stream (no status)."""
    headers = headers or {}
    said = parse_complaint(body)
    if told := headers.get("x-amzn-errortype"):
        said = said._replace(code=f"{said.code} {told.partition(':')[0]}".strip())
    kind, spent = classify_failure(status, said), status == 402 or said.matches(OUT_OF_CREDIT)
    asked = parse_retry_after(headers)
    message = endpoint.redact_key(said.message)
    if kind == "not_found" and (not model or is_html_page(body)):
        return no_service_error(endpoint, status)
    headline = _format_headline(kind, endpoint, model, spent=spent)
    return ProviderError(
        kind,
        f"{headline}: {message}" if message else f"{headline}.",
        status=status,
        retry_after=said.retry if asked is None else asked,
        next=_next_steps(kind, endpoint, spent=spent),
    )


def is_html_page(body: bytes) -> bool:
    """Whether it is a page for people."""
    return body[:200].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def no_service_error(endpoint: Endpoint, status: int = 0) -> ProviderError:
    """That the address is not one of a model service."""
    plain = not urlsplit(endpoint.base_url).path.strip("/") and endpoint.dialect in ("chat", "responses")
    steps = [f"most such servers are at {endpoint.base_url.rstrip('/')}/v1"] if plain else []
    return ProviderError(
        "not_found",
        f"There is no model service of this kind at {endpoint.base_url}.",
        status=status,
        next=[*steps, f"Is the base URL of {endpoint.name} right?", "sylph doctor"],
    )


def no_list_error(endpoint: Endpoint, said: bytes) -> ProviderError:
    """What came instead of a list of models."""
    if is_html_page(said):
        return no_service_error(endpoint)
    return ProviderError("format", f"{endpoint.name} sent no list of models: {body_excerpt(said)}")


def add_network_advice(error: ProviderError) -> ProviderError:
    """The same, with what to do where nobody answers."""
    if error.failure != "network" or error.sent or error.trouble.next:
        return error
    told = ProviderError("network", str(error), next=["sylph doctor", "or name another model with -m"])
    told.sent = False
    return told


def _format_headline(kind: FailureKind, endpoint: Endpoint, model: str, *, spent: bool) -> str:
    if kind == "auth" and spent:
        return f"{endpoint.name} wants credit first"
    if kind == "auth" and endpoint.elsewhere:
        return f"No key was sent to {endpoint.base_url}, for {endpoint.elsewhere}"
    return HEADLINE[kind].format(name=endpoint.name, model=model or "the model")


def classify_failure(status: int, said: VendorComplaint) -> FailureKind:
    if not status:
        # Some put the status that they would have answered with into the object.
        status = next((int(word) for word in said.code.split() if word.isdecimal()), 0)
    if status in (0, 400, 413, 422, 500) and said.matches(OVERFLOW):
        return "overflow"
    if status in (0, 400, 403) and said.matches(REFUSED):
        return "refusal"
    # An empty account does not fill up by waiting; but one vendor says the same of a minute that is full.
    if status in (0, 400, 403, 429) and said.matches(OUT_OF_CREDIT) and said.retry is None:
        return "auth"
    if status == 400:
        return _match_kind(said, BY_WORD_400, "bad_request")
    if 400 <= status < 500 or status in BY_STATUS:
        return BY_STATUS.get(status, "bad_request")
    return _match_kind(said, BY_WORD, "server_error")


def _match_kind(said: VendorComplaint, words: Sequence[tuple[str, FailureKind]], other: FailureKind) -> FailureKind:
    for pattern, kind in words:
        if said.matches(pattern):
            return kind
    return other


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds a service asks to wait, where it says so."""
    now = time.time() if now is None else now
    if (ms := _parse_number(headers.get("retry-after-ms", ""))) is not None:
        return ms / 1000
    value = headers.get("retry-after") or headers.get("x-ratelimit-reset", "")
    if (number := _parse_number(value)) is None:
        return _parse_duration(value) or _parse_date(value, now)
    # A reset may be given as a moment: seconds, or milliseconds, since 1970.
    if number > 1e11:
        number /= 1000
    return max(number - now, 0.0) if number > 1e9 else number


def body_excerpt(body: bytes, limit: int = 300) -> str:
    """The start of a body that could not be read, as one line."""
    return first_line(body[: limit * 4].decode("utf-8", "replace"), limit)


def _parse_number(value: str) -> float | None:
    try:
        return max(float(value), 0.0)
    except ValueError:
        return None


def _parse_duration(value: str) -> float | None:
    """`1m30s`, `250ms`."""
    parts = re.findall(r"([\d.]+)(ms|[smh])", value)
    whole = parts and "".join(number + unit for number, unit in parts) == value
    return sum(float(number) * UNITS[unit] for number, unit in parts) if whole else None


def _parse_date(value: str, now: float) -> float | None:
    try:
        moment = time.strptime(value, "%a, %d %b %Y %H:%M:%S GMT")
    except ValueError:
        return None
    return max(calendar.timegm(moment) - now, 0.0)


def _next_steps(kind: FailureKind, endpoint: Endpoint, *, spent: bool) -> tuple[str, ...]:
    if spent:
        return (f"Add credit to the account at {endpoint.name}, or choose another model with -m.",)
    if kind == "auth" and endpoint.login and not endpoint.key_from.startswith("providers."):
        return (f"sylph connect {endpoint.name}  (it uses {endpoint.key_from})",)
    if kind == "auth" and endpoint.elsewhere:
        return (f"sylph connect {endpoint.name}  saves a key for {endpoint.base_url}", f"or {endpoint.back}")
    if kind == "auth":
        return (f"Set {endpoint.key_from or 'the key of ' + endpoint.name} to a key that is valid.",)
    if kind == "not_found":
        return ("`sylph models` lists what there is.", f"Is the base URL right? It is {endpoint.base_url}.")
    return ()
