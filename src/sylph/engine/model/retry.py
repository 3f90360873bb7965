"""When a model call is tried again, and which failures may have cost something."""

import random

from msgspec import Struct

from sylph.core.errors import ProviderError

# A service that says one of these has not begun to answer, and charges nothing.
UNCHARGED_FAILURES = frozenset(
    {"rate_limited", "overloaded", "overflow", "auth", "not_found", "bad_request", "breaker_open"}
)


# Whoever stands between us and the service says these: what the service itself did, nobody knows.
AMBIGUOUS_STATUSES = (408, 502, 504)


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How long and how often a model call is waited for and tried again."""

    retries: int = 4
    base: float = 0.5
    longest: float = 30.0
    longest_asked: float = 120.0
    first_seconds: float = 300.0
    idle_seconds: float = 120.0
    concurrency: int = 8
    failures: int = 5
    """So many in a row, and a service is left alone for a while."""

    def retry_delay(self, error: ProviderError, attempt: int) -> float | None:
        """Seconds until the next try, or None: it failed for good."""
        if not error.is_retryable or attempt > self.retries:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_asked else None
        step = min(self.base * 2 ** (attempt - 1), self.longest)
        return step * random.uniform(0.75, 1.25)


def may_cost(error: ProviderError, *, heard: bool) -> bool:
    """Whether a service may charge for an attempt that failed: unless it did not get it, or did not take it."""
    return heard or (
        error.sent and error.failure not in UNCHARGED_FAILURES and error.status in (0, *AMBIGUOUS_STATUSES)
    )
