"""Metrics as text, in the format of Prometheus. Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class Sample(Struct, frozen=True):
    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class Family(Struct, frozen=True):
    """One metric with all its samples; `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    help: str
    samples: list[Sample]


def exposed(families: Iterable[Family]) -> str:
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {_line(family.help)}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{family.name}{each.suffix}{_labels(each.labels)} {_number(each.value)}" for each in family.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _quoted(value: str) -> str:
    return _line(value).replace('"', '\\"')


def _line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
