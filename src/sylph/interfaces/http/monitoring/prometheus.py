"""Metrics as text, in the format of Prometheus. Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricSample(Struct, frozen=True):
    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class MetricFamily(Struct, frozen=True):
    """One metric with all its samples; `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    help: str
    samples: list[MetricSample]


def render_metrics(families: Iterable[MetricFamily]) -> str:
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {_escape_line(family.help)}", f"# TYPE {family.name} {family.kind}"]
        lines += [
            f"{family.name}{each.suffix}{_format_labels(each.labels)} {_format_number(each.value)}"
            for each in family.samples
        ]
    return "\n".join(lines) + "\n"


def _format_labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_quote_label(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _quote_label(value: str) -> str:
    return _escape_line(value).replace('"', '\\"')


def _escape_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _format_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
