"""Spans and metrics out of facts, sent over OTLP. Only here OpenTelemetry is imported."""

from collections.abc import Callable

from msgspec import Struct, field
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from sylph.core import facts
from sylph.core.events import Event
from sylph.core.messages import Usage
from sylph.faculties.telemetry import attributes
from sylph.faculties.telemetry.terms import Terms

# The bounds that the conventions advise.
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
EXPORT_SECONDS = 5.0


class Turn(Struct):
    """A turn that is open: its span, and the calls under way in it."""

    span: Span
    usage: Usage = field(default_factory=Usage)
    calls: dict[str, tuple[facts.ToolCalled, int]] = field(default_factory=dict[str, tuple[facts.ToolCalled, int]])


class Exporter:
    """One trace for each turn: the turn, the model calls in it, the tools."""

    def __init__(self, terms: Terms, veil: Callable[[str], str]) -> None:
        self._terms, self._veil = terms, veil
        resource = Resource.create({"service.name": "sylph", "service.version": terms.version}).merge(_told())
        base = terms.endpoint.rstrip("/")
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        spans = OTLPSpanExporter(f"{base}/v1/traces" if base else None, timeout=EXPORT_SECONDS)
        self._traces.add_span_processor(BatchSpanProcessor(spans))
        sent = OTLPMetricExporter(f"{base}/v1/metrics" if base else None, timeout=EXPORT_SECONDS)
        self._metrics = MeterProvider([PeriodicExportingMetricReader(sent)], resource, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer("sylph", terms.version)
        meter = self._metrics.get_meter("sylph", terms.version)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens used.", explicit_bucket_boundaries_advisory=TOKENS
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Model calls.", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._turns: dict[tuple[str, str], Turn] = {}
        self._inputs: dict[str, str] = {}

    def take(self, event: Event) -> None:
        match event.body:
            case facts.InputReceived(text=text) if self._terms.content:
                self._inputs[event.session] = text
            case facts.TurnStarted() | facts.TurnResumed():
                self._begin(event)
            case facts.ModelResponded() as fact:
                self._answered(event, fact)
            case facts.ModelFailed() as fact:
                self._model(event, fact.model, 0, attributes.failed(fact), error=fact.trouble.kind)
            case facts.ToolCalled(call=call) as fact:
                self._turn(event).calls[call] = (fact, event.ts)
            case facts.ToolStarted(call=call):
                if known := self._turn(event).calls.get(call):
                    self._turn(event).calls[call] = (known[0], event.ts)
            case facts.ToolFinished() as fact:
                self._finished(event, fact)
            case facts.TurnEnded() as fact:
                self._end(event, fact)
            case _:
                pass

    def close(self, seconds: float) -> None:
        """Sends what there is. A turn that is still open ends in another process: its span does not end here."""
        self._traces.force_flush(int(seconds * 1000))
        self._metrics.shutdown(seconds * 1000)
        self._traces.shutdown()

    def _begin(self, event: Event) -> Turn:
        told = attributes.agent(event.session, event.turn, self._terms.version)
        said = self._inputs.pop(event.session, "")
        if said:
            told["gen_ai.input.messages"] = attributes.message("user", self._veil(said))
        span = self._tracer.start_span("invoke_agent sylph", attributes=told, start_time=_ns(event.ts))
        turn = self._turns[event.session, event.turn] = Turn(span)
        return turn

    def _turn(self, event: Event) -> Turn:
        """The turn of a fact; where it began before anybody listened, it begins with this one."""
        return self._turns.get((event.session, event.turn)) or self._begin(event)

    def _answered(self, event: Event, fact: facts.ModelResponded) -> None:
        told = attributes.responded(fact)
        if self._terms.content and fact.text:
            told["gen_ai.output.messages"] = attributes.message("assistant", self._veil(fact.text))
        self._model(event, fact.model, fact.ms, told)
        turn, common = self._turn(event), attributes.asked(fact.model)
        turn.usage += fact.usage
        for kind, number in (("input", fact.usage.input), ("output", fact.usage.output)):
            self._tokens.record(number, {**common, "gen_ai.token.type": kind})

    def _model(self, event: Event, model: str, ms: int, told: attributes.Attributes, *, error: str = "") -> None:
        common = attributes.asked(model)
        parent = trace.set_span_in_context(self._turn(event).span)
        span = self._tracer.start_span(
            f"chat {common['gen_ai.request.model']}",
            parent,
            SpanKind.CLIENT,
            {**common, **told},
            start_time=_ns(event.ts - ms),
        )
        if error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_ns(event.ts))
        self._seconds.record(ms / 1000, {**common, **({"error.type": error} if error else {})})

    def _finished(self, event: Event, fact: facts.ToolFinished) -> None:
        turn = self._turn(event)
        called, began = turn.calls.pop(fact.call, (None, event.ts - fact.ms))
        told = attributes.tool(called.name if called else "unknown", fact.call)
        if self._terms.content:
            told["gen_ai.tool.call.arguments"] = self._veil(called.arguments if called else "")
            told["gen_ai.tool.call.result"] = self._veil(fact.output)
        error = attributes.error_of(fact)
        if error:
            told["error.type"] = error
        parent = trace.set_span_in_context(turn.span)
        name = f"execute_tool {told['gen_ai.tool.name']}"
        span = self._tracer.start_span(name, parent, SpanKind.INTERNAL, told, start_time=_ns(began))
        if error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_ns(event.ts))

    def _end(self, event: Event, fact: facts.TurnEnded) -> None:
        turn = self._turn(event)
        del self._turns[event.session, event.turn]
        turn.span.set_attributes(
            {
                "sylph.outcome": fact.outcome,
                "sylph.rounds": fact.rounds,
                "gen_ai.usage.input_tokens": turn.usage.input,
                "gen_ai.usage.output_tokens": turn.usage.output,
            }
        )
        if fact.outcome == "failed":
            turn.span.set_attribute("error.type", fact.trouble.kind if fact.trouble else "failed")
            turn.span.set_status(Status(StatusCode.ERROR))
        turn.span.end(_ns(event.ts))


def _told() -> Resource:
    """What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say counts first."""
    told = {key: value for key, value in Resource.create().attributes.items() if value != "unknown_service"}
    return Resource(told)


def _ns(ms: int) -> int:
    return ms * 1_000_000
