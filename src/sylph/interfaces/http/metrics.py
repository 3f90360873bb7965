"""Metrics for Prometheus: what the log says was done, and how the server fares."""

from collections.abc import Iterator
from itertools import accumulate

from starlette.responses import Response

from sylph import __version__
from sylph.interfaces.http.counts import BOUNDS, Counts
from sylph.interfaces.http.exposition import MEDIA, Family, Sample, exposed
from sylph.interfaces.http.health import process
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes
from sylph.interfaces.http.tally import OTHER, Tally
from sylph.wiring import store_of

routes = Routes("metrics", prefix="")


@routes.get("/metrics", scope="read", media="text/plain")
async def metrics(house: House) -> Response:
    """Metrics in the text format of Prometheus. Those of sessions, turns, models and tools are counted from the log."""
    await house.tally.read(store_of(house.app.config))
    families = [*_done(house.tally, set(house.app.runtime.executor.tools)), *_served(house.counts), *_machine(house)]
    return Response(exposed(families), media_type=MEDIA)


def _done(tally: Tally, tools: set[str]) -> Iterator[Family]:
    places = [place for place in tally.places.values() if not place.deleted]
    states = {place.state for place in places}
    yield Family(
        "sylph_sessions",
        "gauge",
        "Sessions by state.",
        [Sample(sum(place.state == state for place in places), {"state": state}) for state in sorted(states)],
    )
    asked = sum(len(place.asked) for place in places)
    yield Family("sylph_questions_open", "gauge", "Questions that wait for a person.", [Sample(asked)])
    turns = [Sample(number, {"outcome": outcome}) for outcome, number in sorted(tally.turns.items())]
    yield Family("sylph_turns_total", "counter", "Turns that ended, by outcome.", turns)
    yield from _models(tally)
    calls: dict[tuple[str, str], int] = {}
    for (name, outcome), number in tally.tools.items():
        # A model may call what there is not.
        key = (name if name in tools else OTHER, outcome)
        calls[key] = calls.get(key, 0) + number
    told = [Sample(number, {"tool": name, "outcome": outcome}) for (name, outcome), number in sorted(calls.items())]
    yield Family("sylph_tool_calls_total", "counter", "Tool calls that ended, by outcome.", told)


def _models(tally: Tally) -> Iterator[Family]:
    rows = [({"model": model, "role": role}, spoken) for (model, role), spoken in sorted(tally.models.items())]
    yield Family(
        "sylph_model_calls_total",
        "counter",
        "Model calls, by outcome.",
        [
            Sample(number, {**labels, "outcome": outcome})
            for labels, spoken in rows
            for outcome, number in (("answered", spoken.calls), ("failed", spoken.failures))
        ],
    )
    kinds = ("input", "output", "cached", "reasoning")
    yield Family(
        "sylph_model_tokens_total",
        "counter",
        "Tokens; cached ones are a part of the input, reasoning is a part of the output.",
        [Sample(getattr(spoken.usage, kind), {**labels, "kind": kind}) for labels, spoken in rows for kind in kinds],
    )
    costs = [Sample(spoken.cost / 1_000_000, labels) for labels, spoken in rows]
    yield Family("sylph_model_cost_dollars_total", "counter", "What is known to have been spent.", costs)
    seconds = [Sample(spoken.seconds, labels) for labels, spoken in rows]
    yield Family("sylph_model_seconds_total", "counter", "Time that models took to answer.", seconds)


def _served(counts: Counts) -> Iterator[Family]:
    yield Family(
        "sylph_http_requests_total",
        "counter",
        "Requests since the server was started.",
        [
            Sample(number, {"method": method, "route": route, "status": str(status)})
            for (method, route, status), number in sorted(counts.requests.items())
        ],
    )
    samples: list[Sample] = []
    for route, latency in sorted(counts.latency.items()):
        names = [*map(str, BOUNDS), "+Inf"]
        for bound, number in zip(names, accumulate(latency.buckets), strict=True):
            samples.append(Sample(number, {"route": route, "le": bound}, "_bucket"))
        samples.append(Sample(latency.seconds, {"route": route}, "_sum"))
        samples.append(Sample(latency.count, {"route": route}, "_count"))
    yield Family("sylph_http_request_seconds", "histogram", "How long requests took; streams are left out.", samples)
    yield Family("sylph_http_streams_open", "gauge", "Streams that are open.", [Sample(counts.streams)])


def _machine(house: House) -> Iterator[Family]:
    used, store = process(), store_of(house.app.config)
    size = sum(each.stat().st_size for each in store.parent.glob(f"{store.name}*"))
    yield Family("sylph_store_bytes", "gauge", "Size of the store.", [Sample(size)])
    yield Family("sylph_build_info", "gauge", "The version that runs.", [Sample(1, {"version": __version__})])
    started = "When the process was started, in seconds since 1970; counters of requests began then."
    yield Family("process_start_time_seconds", "gauge", started, [Sample(house.started)])
    yield Family("process_resident_memory_bytes", "gauge", "Memory in use.", [Sample(used.memory)])
    yield Family("process_open_fds", "gauge", "Open files.", [Sample(used.files)])
    yield Family("process_cpu_seconds_total", "counter", "Processor time.", [Sample(used.seconds)])
