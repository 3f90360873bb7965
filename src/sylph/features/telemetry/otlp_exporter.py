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
from sylph.features.telemetry import attributes
from sylph.features.telemetry.options import TelemetryOptions

# The bounds that the conventions advise.
TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
SECOND_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
EXPORT_SECONDS = 5.0


class OpenTurnSpan(Struct):
    """A turn that is open: its span, and the calls under way in it."""

    span: Span
    usage: Usage = field(default_factory=Usage)
    calls: dict[str, tuple[facts.ToolCalled, int]] = field(default_factory=dict[str, tuple[facts.ToolCalled, int]])


class OtlpExporter:
    """One trace for each turn: the turn, the model calls in it, the tools."""

    def __init__(self, terms: TelemetryOptions, redactor: Callable[[str], str]) -> None:
        self._terms, self._redactor = terms, redactor
        resource = Resource.create({"service.name": "sylph", "service.version": terms.version}).merge(
            _environment_resource()
        )
        base = terms.endpoint.rstrip("/")
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        spans = OTLPSpanExporter(f"{base}/v1/traces" if base else None, timeout=EXPORT_SECONDS)
        self._traces.add_span_processor(BatchSpanProcessor(spans))
        sent = OTLPMetricExporter(f"{base}/v1/metrics" if base else None, timeout=EXPORT_SECONDS)
        self._metrics = MeterProvider([PeriodicExportingMetricReader(sent)], resource, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer("sylph", terms.version)
        meter = self._metrics.get_meter("sylph", terms.version)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens used.", explicit_bucket_boundaries_advisory=TOKEN_BUCKETS
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Model calls.", explicit_bucket_boundaries_advisory=SECOND_BUCKETS
        )
        self._turns: dict[tuple[str, str], OpenTurnSpan] = {}
        self._inputs: dict[str, str] = {}

    def export_event(self, event: Event) -> None:
        match event.body:
            case facts.InputReceived(text=text) if self._terms.content:
                self._inputs[event.session] = text
            case facts.TurnStarted() | facts.TurnResumed():
                self._start_turn(event)
            case facts.ModelResponded() as fact:
                self._record_response(event, fact)
            case facts.ModelFailed() as fact:
                self._record_model_call(
                    event, fact.model, 0, attributes.failure_attributes(fact), error=fact.trouble.kind
                )
            case facts.ToolCalled(call=call) as fact:
                self._turn_for(event).calls[call] = (fact, event.ts)
            case facts.ToolStarted(call=call):
                if known := self._turn_for(event).calls.get(call):
                    self._turn_for(event).calls[call] = (known[0], event.ts)
            case facts.ToolFinished() as fact:
                self._record_tool(event, fact)
            case facts.TurnEnded() as fact:
                self._end_turn(event, fact)
            case _:
                pass

    def close(self, seconds: float) -> None:
        """Sends what there is. A turn that is still open ends in another process: its span does not end here."""
        self._traces.force_flush(int(seconds * 1000))
        self._metrics.shutdown(seconds * 1000)
        self._traces.shutdown()

    def _start_turn(self, event: Event) -> OpenTurnSpan:
        told = attributes.agent_attributes(event.session, event.turn, self._terms.version)
        said = self._inputs.pop(event.session, "")
        if said:
            told["gen_ai.input.messages"] = attributes.message_json("user", self._redactor(said))
        span = self._tracer.start_span("invoke_agent sylph", attributes=told, start_time=_to_nanoseconds(event.ts))
        turn = self._turns[event.session, event.turn] = OpenTurnSpan(span)
        return turn

    def _turn_for(self, event: Event) -> OpenTurnSpan:
        """The turn of a fact; where it began before anybody listened, it begins with this one."""
        return self._turns.get((event.session, event.turn)) or self._start_turn(event)

    def _record_response(self, event: Event, fact: facts.ModelResponded) -> None:
        told = attributes.response_attributes(fact)
        if self._terms.content and fact.text:
            told["gen_ai.output.messages"] = attributes.message_json("assistant", self._redactor(fact.text))
        self._record_model_call(event, fact.model, fact.ms, told)
        turn, common = self._turn_for(event), attributes.request_attributes(fact.model)
        turn.usage += fact.usage
        for kind, number in (("input", fact.usage.input), ("output", fact.usage.output)):
            self._tokens.record(number, {**common, "gen_ai.token.type": kind})

    def _record_model_call(
        self, event: Event, model: str, ms: int, told: attributes.Attributes, *, error: str = ""
    ) -> None:
        common = attributes.request_attributes(model)
        parent = trace.set_span_in_context(self._turn_for(event).span)
        span = self._tracer.start_span(
            f"chat {common['gen_ai.request.model']}",
            parent,
            SpanKind.CLIENT,
            {**common, **told},
            start_time=_to_nanoseconds(event.ts - ms),
        )
        if error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_to_nanoseconds(event.ts))
        self._seconds.record(ms / 1000, {**common, **({"error.type": error} if error else {})})

    def _record_tool(self, event: Event, fact: facts.ToolFinished) -> None:
        turn = self._turn_for(event)
        called, began = turn.calls.pop(fact.call, (None, event.ts - fact.ms))
        told = attributes.tool_attributes(called.name if called else "unknown", fact.call)
        if self._terms.content:
            told["gen_ai.tool.call.arguments"] = self._redactor(called.arguments if called else "")
            told["gen_ai.tool.call.result"] = self._redactor(fact.output)
        error = attributes.error_type(fact)
        if error:
            told["error.type"] = error
        parent = trace.set_span_in_context(turn.span)
        name = f"execute_tool {told['gen_ai.tool.name']}"
        span = self._tracer.start_span(name, parent, SpanKind.INTERNAL, told, start_time=_to_nanoseconds(began))
        if error:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_to_nanoseconds(event.ts))

    def _end_turn(self, event: Event, fact: facts.TurnEnded) -> None:
        turn = self._turn_for(event)
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
        turn.span.end(_to_nanoseconds(event.ts))


def _environment_resource() -> Resource:
    """What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say counts first."""
    told = {key: value for key, value in Resource.create().attributes.items() if value != "unknown_service"}
    return Resource(told)


def _to_nanoseconds(ms: int) -> int:
    return ms * 1_000_000
