"""A circuit breaker: a service that keeps failing is left alone for a while, then tried once."""

from sylph.core.clock import Clock
from sylph.core.errors import ProviderError


class CircuitBreaker:
    def __init__(self, name: str, clock: Clock, *, failures: int = 5, seconds: float = 30.0) -> None:
        self._name, self._clock = name, clock
        self._limit, self._seconds = failures, seconds
        self._failures = 0
        self._until = 0.0

    def ensure_closed(self) -> None:
        """Raises while the circuit is open. After its time one caller gets through, to find out."""
        left = self._until - self._clock.ticks()
        if left > 0:
            raise ProviderError(
                "breaker_open",
                f"{self._name} failed {self._failures} times in a row; it is left alone for {left:.0f} s more.",
                next=["Wait a moment and try again.", "Choose another model with `-m provider/model`."],
            )
        if self._failures >= self._limit:
            self._until = self._clock.ticks() + self._seconds

    def record_success(self) -> None:
        self._failures, self._until = 0, 0.0

    def record_failure(self, error: ProviderError) -> None:
        """Counts what says something about the service; a bad request says something about us."""
        if error.failure == "breaker_open":
            return
        if not error.is_retryable:
            self.record_success()
            return
        self._failures += 1
        if self._failures >= self._limit:
            self._until = self._clock.ticks() + self._seconds
