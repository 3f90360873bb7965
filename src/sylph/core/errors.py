"""Errors by audience: the model, the person, or (everything else) the developer.

Trouble                 what went wrong, as data: kind, message, details, next actions
SylphError
├── ToolError           for the model: becomes a failed tool result, and the turn goes on
│   ├── Refused         a rule or a person said no
│   └── Unknown         whether it took effect cannot be told
├── UserError           for the person: shown as it is, without a traceback
│   ├── StoreError      the log could not be read or written
│   │   └── Conflict    somebody else wrote to this session
│   ├── SessionBusy     another process works on this session
│   ├── NotFound        no such session, turn, question …
│   ├── ServerGone      the server that did the work is not there any more
│   ├── NoModel         there is no model to think with
│   └── BudgetSpent     the turn used up its rounds, time or money
└── ProviderError       for the gateway: what the model's service did wrong
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec


class ErrorReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as data: what every door shows and every log keeps."""

    kind: str
    message: str
    details: dict[str, str] = {}
    next: tuple[str, ...] = ()


class SylphError(Exception):
    """An error that somebody can act on."""

    kind = "error"

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        details: Mapping[str, object] | None = None,
        next: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        shown = {key: str(value) for key, value in (details or {}).items()}
        self.trouble = ErrorReport(kind or self.kind, message, shown, tuple(next))


class ToolError(SylphError):
    """For the model: becomes a failed tool result, and the turn goes on."""

    kind = "tool_failed"


class CallRefused(ToolError):
    """For the model: a rule or a person said no."""

    kind = "refused"


class OutcomeUnknown(ToolError):
    """For the model: whether the call took effect cannot be told; here is what is known."""

    kind = "unknown"


class UserError(SylphError):
    """For the person: shown as it is, without a traceback."""

    kind = "usage"


class StoreError(UserError):
    """The log could not be read or written."""

    kind = "store_failed"


class LogConflict(StoreError):
    """The session's log has grown under us: somebody else is writing to it."""

    kind = "conflict"


class SessionBusy(UserError):
    """Another process is at work on this session."""

    kind = "session_busy"


class NotFound(UserError):
    """There is no such thing."""

    kind = "not_found"


class ServerGone(UserError):
    """The server that did the work is not there any more."""

    kind = "server_gone"


class NoModel(UserError):
    """There is no model to think with."""

    kind = "no_model"


class BudgetSpent(UserError):
    """The turn used up its rounds, time or money."""

    kind = "budget_spent"


FailureKind = Literal[
    "rate_limited",
    "overloaded",
    "server_error",
    "network",
    "timeout",
    "overflow",
    "auth",
    "not_found",
    "refusal",
    "bad_request",
    "format",
    "cut",
    "breaker_open",
]

# A second try may go better; everything else needs somebody to change something first.
RETRYABLE_FAILURES: frozenset[str] = frozenset(
    {"rate_limited", "overloaded", "server_error", "network", "timeout", "format", "cut"}
)


class ProviderError(SylphError):
    """For the gateway: what the model's service did wrong, and whether waiting helps."""

    kind = "provider_failed"

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int = 0,
        retry_after: float | None = None,
        next: Sequence[str] = (),
    ) -> None:
        details = {"status": status} if status else None
        super().__init__(message, kind=kind, details=details, next=next)
        self.failure: FailureKind = kind
        self.status = status
        self.retry_after = retry_after
        self.sent = True
        """Whether the request may have reached the service: then it may be charged."""
        self.shown = False
        """Whether somebody has seen a part of the answer: then it is not asked for again, here or elsewhere."""

    @property
    def is_retryable(self) -> bool:
        return self.failure in RETRYABLE_FAILURES
