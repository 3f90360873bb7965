"""What a service's complaint means: statuses and error objects of many vendors as failures the gateway knows."""

import calendar
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from sylph.core.errors import FailureKind, ProviderError
from sylph.core.text import first_line
from sylph.providers.endpoint import Endpoint

# Patterns, for upper and lower case alike, compiled when first needed.
# This one in the order: OpenAI and vLLM; llama.cpp; Ollama; LM Studio; what others say.
OVERFLOW = (
    r"context_length_exceeded|maximum context length|longer than the maximum model length"
    r"|exceed_context_size|exceeds? the available context size|context size (has been )?exceeded"
    r"|exceed(s|ed)? (the )?(max(imum)? )?context|prompt (is )?too long|input length exceeds"
    r"|context the overflows|greater than the context length|context length of only"
    r"|context window|too many (input )?tokens|input token count"
)
SPENT = r"insufficient_quota|billing|exceeded your current quota|insufficient (balance|credit)"
REFUSED = r"content_filter|content_policy|content management policy"

BY_STATUS: Mapping[int, FailureKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    413: "overflow",
    429: "rate_limited",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
# Error objects inside a stream carry no status, only words.
BY_WORD: tuple[tuple[str, FailureKind], ...] = (
    (r"rate.?limit|too many requests", "rate_limited"),
    (r"overloaded|at capacity|unavailable", "overloaded"),
    (r"time(d)?.?out", "timeout"),
    (r"authentication|permission|invalid_api_key", "auth"),
    (r"not_found", "not_found"),
    (r"invalid_request", "bad_request"),
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
SECRET = 8
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Error(msgspec.Struct):
    message: str | None = None
    type: str | None = None
    code: str | int | None = None


class _Body(msgspec.Struct):
    error: _Error | str | None = None
    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    detail: Any = None


class Complaint(NamedTuple):
    """What the service says is wrong: its words, and the code it gives them."""

    message: str
    code: str = ""

    def says(self, pattern: str) -> bool:
        return re.search(pattern, f"{self.code} {self.message}", re.IGNORECASE) is not None


def complaint(body: bytes) -> Complaint:
    """The message in whatever shape the service wraps it; else the first of what it sent."""
    try:
        said = msgspec.json.decode(body, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Complaint(excerpt(body))
    if isinstance(said.error, str):
        return Complaint(said.error)
    error = said.error or said
    code = " ".join(str(part) for part in (error.code, error.type) if part)
    detail = "" if said.detail is None else excerpt(msgspec.json.encode(said.detail)).strip('"')
    return Complaint(error.message or detail or excerpt(body), code)


def failure(
    endpoint: Endpoint, model: str, body: bytes, *, status: int = 0, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error to raise for a response with this status, or for an error object inside a stream (no status)."""
    said = complaint(body)
    kind = kind_of(status, said)
    # A stand-in such as `x` or `none` is no secret, and would be found inside of words.
    secret = len(endpoint.api_key) >= SECRET
    message = said.message.replace(endpoint.api_key, "[key]") if secret else said.message
    headline = HEADLINE[kind].format(name=endpoint.name, model=model or "the model")
    return ProviderError(
        kind,
        f"{headline}: {message}" if message else f"{headline}.",
        status=status,
        retry_after=wait(headers or {}),
        next=_advice(kind, endpoint, spent=said.says(SPENT)),
    )


def kind_of(status: int, said: Complaint) -> FailureKind:
    if not status:
        # Some put the status that they would have answered with into the object.
        status = next((int(word) for word in said.code.split() if word.isdecimal()), 0)
    if status in (0, 400, 413, 422, 500) and said.says(OVERFLOW):
        return "overflow"
    if status in (0, 400, 403) and said.says(REFUSED):
        return "refusal"
    # An empty account does not fill up by waiting.
    if status in (0, 403, 429) and said.says(SPENT):
        return "auth"
    if 400 <= status < 500 or status in BY_STATUS:
        return BY_STATUS.get(status, "bad_request")
    return _by_word(said)


def _by_word(said: Complaint) -> FailureKind:
    for pattern, kind in BY_WORD:
        if said.says(pattern):
            return kind
    return "server_error"


def wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds a service asks to wait, where it says so."""
    now = time.time() if now is None else now
    if (ms := _number(headers.get("retry-after-ms", ""))) is not None:
        return ms / 1000
    value = headers.get("retry-after") or headers.get("x-ratelimit-reset", "")
    if (number := _number(value)) is None:
        return _span(value) or _until(value, now)
    # A reset may be given as a moment: seconds, or milliseconds, since 1970.
    if number > 1e11:
        number /= 1000
    return max(number - now, 0.0) if number > 1e9 else number


def excerpt(body: bytes, limit: int = 300) -> str:
    """The start of a body that could not be read, as one line."""
    return first_line(body[: limit * 4].decode("utf-8", "replace"), limit)


def _number(value: str) -> float | None:
    try:
        return max(float(value), 0.0)
    except ValueError:
        return None


def _span(value: str) -> float | None:
    """`1m30s`, `250ms`."""
    parts = re.findall(r"([\d.]+)(ms|[smh])", value)
    whole = parts and "".join(number + unit for number, unit in parts) == value
    return sum(float(number) * UNITS[unit] for number, unit in parts) if whole else None


def _until(value: str, now: float) -> float | None:
    try:
        moment = time.strptime(value, "%a, %d %b %Y %H:%M:%S GMT")
    except ValueError:
        return None
    return max(calendar.timegm(moment) - now, 0.0)


def _advice(kind: FailureKind, endpoint: Endpoint, *, spent: bool) -> tuple[str, ...]:
    if spent:
        return (f"Add credit to the account at {endpoint.name}, or choose another model with -m.",)
    if kind == "auth":
        return (f"Set {endpoint.key_from or 'the key of ' + endpoint.name} to a key that is valid.",)
    if kind == "not_found":
        return ("`sylph models` lists what there is.", f"Is the base URL right? It is {endpoint.base_url}.")
    return ()
