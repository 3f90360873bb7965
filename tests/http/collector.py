"""An OpenTelemetry collector on loopback: takes OTLP over HTTP, and keeps what it was told."""

import asyncio
import gzip
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Span:
    name: str
    kind: int
    id: bytes
    parent: bytes
    trace: bytes
    start: int
    end: int
    status: int
    attributes: dict[str, Any]


@dataclass
class Collector:
    status: int = 200
    spans: list[Span] = field(default_factory=list[Span])
    metrics: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    services: set[str] = field(default_factory=set[str])
    raw: bytes = b""
    posts: int = 0

    async def __aenter__(self) -> "Collector":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                lines = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
                body = await reader.readexactly(int(lines.get("content-length", 0)))
                if lines.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                self.posts += 1
                if self.status == 200:
                    self._take(head.split()[1], body)
                writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _take(self, path: str, body: bytes) -> None:
        self.raw += body
        if path == "/v1/traces":
            told = ExportTraceServiceRequest.FromString(body)
            for resource in told.resource_spans:
                self.services.add(_values(resource.resource.attributes)["service.name"])
                self.spans += [_span(span) for scope in resource.scope_spans for span in scope.spans]
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                    points = [
                        {"count": point.count, "sum": point.sum, **_values(point.attributes)}
                        for point in metric.histogram.data_points
                    ]
                    self.metrics[metric.name] = points


def _span(span: Any) -> Span:
    return Span(
        span.name,
        span.kind,
        span.span_id,
        span.parent_span_id,
        span.trace_id,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code,
        _values(span.attributes),
    )


def _values(attributes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return found
