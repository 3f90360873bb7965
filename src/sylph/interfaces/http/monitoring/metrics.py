"""Metrics for Prometheus: what the log says was done, and how the server fares."""

from collections.abc import Iterator
from itertools import accumulate

from starlette.responses import Response

from sylph import __version__
from sylph.compose.engine import log_path
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.monitoring.health import measure_process
from sylph.interfaces.http.monitoring.prometheus import METRICS_MEDIA_TYPE, MetricFamily, MetricSample, render_metrics
from sylph.interfaces.http.state.log_counters import OTHER, LogCounters
from sylph.interfaces.http.state.request_counters import LATENCY_BUCKETS, RequestCounters
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("metrics", prefix="")


@routes.get("/metrics", scope="read", media="text/plain")
async def get_metrics(server: ServerState) -> Response:
    """Metrics in the text format of Prometheus. Those of sessions, turns, models and tools are counted from the log."""
    await server.log_counters.update(log_path(server.app.config))
    families = [
        *_log_metrics(server.log_counters, set(server.app.runtime.executor.tools)),
        *_request_metrics(server.request_counters),
        *_process_metrics(server),
    ]
    return Response(render_metrics(families), media_type=METRICS_MEDIA_TYPE)


def _log_metrics(tally: LogCounters, tools: set[str]) -> Iterator[MetricFamily]:
    places = [place for place in tally.sessions.values() if not place.deleted]
    states = {place.state for place in places}
    yield MetricFamily(
        "sylph_sessions",
        "gauge",
        "Sessions by state.",
        [MetricSample(sum(place.state == state for place in places), {"state": state}) for state in sorted(states)],
    )
    asked = sum(len(place.asked) for place in places)
    yield MetricFamily("sylph_questions_open", "gauge", "Questions that wait for a person.", [MetricSample(asked)])
    turns = [MetricSample(number, {"outcome": outcome}) for outcome, number in sorted(tally.turns.items())]
    yield MetricFamily("sylph_turns_total", "counter", "Turns that ended, by outcome.", turns)
    yield from _model_metrics(tally)
    calls: dict[tuple[str, str], int] = {}
    for (name, outcome), number in tally.tools.items():
        # A model may call what there is not.
        key = (name if name in tools else OTHER, outcome)
        calls[key] = calls.get(key, 0) + number
    told = [
        MetricSample(number, {"tool": name, "outcome": outcome}) for (name, outcome), number in sorted(calls.items())
    ]
    yield MetricFamily("sylph_tool_calls_total", "counter", "Tool calls that ended, by outcome.", told)


def _model_metrics(tally: LogCounters) -> Iterator[MetricFamily]:
    rows = [({"model": model, "role": role}, spoken) for (model, role), spoken in sorted(tally.models.items())]
    yield MetricFamily(
        "sylph_model_calls_total",
        "counter",
        "Model calls, by outcome.",
        [
            MetricSample(number, {**labels, "outcome": outcome})
            for labels, spoken in rows
            for outcome, number in (("answered", spoken.calls), ("failed", spoken.failures))
        ],
    )
    kinds = ("input", "output", "cached", "reasoning")
    yield MetricFamily(
        "sylph_model_tokens_total",
        "counter",
        "Tokens; cached ones are a part of the input, reasoning is a part of the output.",
        [
            MetricSample(getattr(spoken.usage, kind), {**labels, "kind": kind})
            for labels, spoken in rows
            for kind in kinds
        ],
    )
    costs = [MetricSample(spoken.cost / 1_000_000, labels) for labels, spoken in rows]
    yield MetricFamily("sylph_model_cost_dollars_total", "counter", "What is known to have been spent.", costs)
    seconds = [MetricSample(spoken.seconds, labels) for labels, spoken in rows]
    yield MetricFamily("sylph_model_seconds_total", "counter", "Time that models took to answer.", seconds)


def _request_metrics(counts: RequestCounters) -> Iterator[MetricFamily]:
    yield MetricFamily(
        "sylph_http_requests_total",
        "counter",
        "Requests since the server was started.",
        [
            MetricSample(number, {"method": method, "route": route, "status": str(status)})
            for (method, route, status), number in sorted(counts.requests.items())
        ],
    )
    samples: list[MetricSample] = []
    for route, latency in sorted(counts.latency.items()):
        names = [*map(str, LATENCY_BUCKETS), "+Inf"]
        for bound, number in zip(names, accumulate(latency.buckets), strict=True):
            samples.append(MetricSample(number, {"route": route, "le": bound}, "_bucket"))
        samples.append(MetricSample(latency.seconds, {"route": route}, "_sum"))
        samples.append(MetricSample(latency.count, {"route": route}, "_count"))
    yield MetricFamily(
        "sylph_http_request_seconds", "histogram", "How long requests took; streams are left out.", samples
    )
    yield MetricFamily("sylph_http_streams_open", "gauge", "Streams that are open.", [MetricSample(counts.streams)])


def _process_metrics(server: ServerState) -> Iterator[MetricFamily]:
    used, store = measure_process(), log_path(server.app.config)
    size = sum(each.stat().st_size for each in store.parent.glob(f"{store.name}*"))
    yield MetricFamily("sylph_store_bytes", "gauge", "Size of the store.", [MetricSample(size)])
    yield MetricFamily(
        "sylph_build_info", "gauge", "The version that runs.", [MetricSample(1, {"version": __version__})]
    )
    started = "When the process was started, in seconds since 1970; counters of requests began then."
    yield MetricFamily("process_start_time_seconds", "gauge", started, [MetricSample(server.started)])
    yield MetricFamily("process_resident_memory_bytes", "gauge", "Memory in use.", [MetricSample(used.memory)])
    yield MetricFamily("process_open_fds", "gauge", "Open files.", [MetricSample(used.files)])
    yield MetricFamily("process_cpu_seconds_total", "counter", "Processor time.", [MetricSample(used.seconds)])
