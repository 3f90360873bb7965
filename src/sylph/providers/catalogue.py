"""What is known of models without asking anybody: windows, prices, abilities, from a table that comes with Sylph."""

import re
from functools import cache
from pathlib import Path

from sylph.core.provider import ModelInfo
from sylph.providers.vendors.table import VENDORS_BY_NAME

# Services that offer what another one makes, at its prices.
SAME_MODELS_AS = {"azure": "openai", "vertex": "google"}
# A name with the day it was made, or a wish for the newest, means the model without it.
DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
MILLION = 1_000_000


@cache
def find_model_info(provider: str, model: str) -> ModelInfo | None:
    """What the table says of a model; None where it does not know it."""
    row = VENDORS_BY_NAME.get(provider)
    known = model_lines(SAME_MODELS_AS.get(provider) or (row.variant_of if row and row.variant_of else provider))
    line = known.get(model) or known.get(DATED.sub("", model))
    return _parse_line(model, line) if line else None


@cache
def model_lines(provider: str) -> dict[str, str]:
    head = f"{provider}\t"
    lines = (line for line in read_table().splitlines() if line.startswith(head))
    return {line.split("\t", 2)[1]: line for line in lines}


def read_table() -> str:
    # Not by importlib.resources: importing that takes longer than all the rest of it.
    return Path(__file__).with_name("catalogue.tsv").read_text(encoding="utf-8")


def _parse_line(model: str, line: str) -> ModelInfo:
    window, output, price_in, price_out, cached, written, above, above_in, above_out, above_cached, can = line.split(
        "\t"
    )[2:]
    return ModelInfo(
        name=model,
        window=_parse_count(window),
        output=_parse_count(output),
        price_in=_parse_micros(price_in),
        price_out=_parse_micros(price_out),
        price_cached=_parse_micros(cached),
        price_written=_parse_micros(written),
        above=_parse_count(above),
        above_in=_parse_micros(above_in),
        above_out=_parse_micros(above_out),
        above_cached=_parse_micros(above_cached),
        sees="v" in can,
        # Such a list is never complete: what it does not say of tools is not known.
        calls=True if "t" in can else None,
    )


def _parse_count(told: str) -> int | None:
    return int(told) if told else None


def _parse_micros(told: str) -> int | None:
    return round(float(told) * MILLION) if told else None
