"""What the server has done since it was started: counted, not logged."""

from bisect import bisect_left

from msgspec import Struct, field

LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})


class RequestLatency(Struct):
    """How long requests took: how many up to each bound, and all of them."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BUCKETS) + 1))
    seconds: float = 0.0
    count: int = 0


class RequestCounters(Struct):
    requests: dict[tuple[str, str, int], int] = field(default_factory=dict[tuple[str, str, int], int])
    latency: dict[str, RequestLatency] = field(default_factory=dict[str, RequestLatency])
    streams: int = 0
    """Streams that are open now."""

    def record_request(self, method: str, route: str, status: int, seconds: float, *, stream: bool) -> None:
        """A request that is over. How long a stream was open says nothing about how fast the server is."""
        key = (method if method in METHODS else "other", route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        if stream:
            return
        known = self.latency.setdefault(route, RequestLatency())
        known.buckets[bisect_left(LATENCY_BUCKETS, seconds)] += 1
        known.seconds += seconds
        known.count += 1
