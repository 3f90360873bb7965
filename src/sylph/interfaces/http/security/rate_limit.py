"""How much one may ask: a bucket of requests for each who asks, filled again as time goes by."""

import ipaddress
import math
import time
from collections.abc import Callable

from sylph.interfaces.http.kit.problem_details import AccessDenied

# So many are remembered; those who asked long ago go first.
MAX_CLIENTS = 10_000


class RequestRateLimiter:
    """`burst` at once, `per_second` in the long run."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def try_acquire(self, principal: str) -> float:
        """Zero where it may be; else the seconds until it may."""
        now = self._clock()
        left, since = self._left.pop(principal, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if len(self._left) >= MAX_CLIENTS:
            del self._left[next(iter(self._left))]
        # Put at the end: the first of all is who was quiet longest.
        self._left[principal] = (left - 1 if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / self._rate

    def refund(self, principal: str) -> None:
        """Gives one back: it was no attempt that counts."""
        if known := self._left.get(principal):
            self._left[principal] = (min(self._burst, known[0] + 1), known[1])

    def check(self, principal: str, said: str = "Too many requests.") -> None:
        if seconds := self.try_acquire(principal):
            raise too_many_error(said, seconds)


class LoginAttemptLimiter:
    """Attempts to log in: few from one address, and not many from all together."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._each = RequestRateLimiter(1 / 12, 5, clock)
        self._all = RequestRateLimiter(0.5, 30, clock)

    def check(self, address: str) -> None:
        """Counts before anything is looked at, so that many at once are many, too."""
        for rate, principal in ((self._each, address), (self._all, "")):
            rate.check(principal, "Too many attempts to log in.")

    def record_success(self, address: str) -> None:
        self._each.refund(address)
        self._all.refund("")


def too_many_error(said: str, seconds: float) -> AccessDenied:
    wait = max(1, math.ceil(seconds))
    return AccessDenied(said, kind="too_many", details={"retry_after": wait}, next=[f"wait {wait} s"])


def client_network(client: str) -> str:
    """Who has an IPv6 network has all of its addresses."""
    if ":" not in client:
        return client
    try:
        return str(ipaddress.ip_network(f"{client.partition('%')[0]}/64", strict=False))
    except ValueError:
        return client
