"""Makes `src/sylph/providers/catalogue.tsv` from a price list in JSON: windows, prices and abilities of models.

The list is an object by model name; each entry has `litellm_provider`, `max_input_tokens`, `input_cost_per_token` and
so on, dollars per token. Such lists are kept in public; what is taken from it are figures, one line per model.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = Path("src/sylph/providers/catalogue.tsv")
# Their names for the providers of ours, and what their names of models begin with.
PROVIDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "gemini": "google",
    "xai": "xai",
    "deepseek": "deepseek",
    "moonshot": "moonshot",
    "minimax": "minimax",
    "mistral": "mistral",
    "groq": "groq",
    "cerebras": "cerebras",
    "dashscope": "qwen",
    "together_ai": "together",
    "bedrock_converse": "bedrock",
    "github_copilot": "copilot",
    "chatgpt": "chatgpt",
}
# Not for conversations, or somebody's own.
PASSED = re.compile(
    r"^ft:|audio|realtime|image|tts|whisper|lyria|robotics|moderation|guard|ocr|deep-research|-exp-|up-to"
)
ABOVE = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
COLUMNS = "provider model window output in out cached written above above_in above_out above_cached can"


def rows(listed: dict[str, dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    seen = set[tuple[str, str]]()
    for name, told in listed.items():
        provider = PROVIDERS.get(str(told.get("litellm_provider")), "")
        model = name.split("/", 1)[1] if "/" in name and told["litellm_provider"] != "bedrock_converse" else name
        if not provider or told.get("mode") not in ("chat", "responses") or PASSED.search(model):
            continue
        if "/" in model and provider == "bedrock":
            # Bought ahead, for a region: another matter.
            continue
        if (provider, model) not in seen:
            seen.add((provider, model))
            yield provider, model, *_figures(told)


def _figures(told: dict[str, Any]) -> tuple[str, ...]:
    tiers = sorted(int(found[1]) for key in told if (found := ABOVE.fullmatch(key)))
    above = f"_above_{tiers[0]}k_tokens" if tiers else ""
    can = (("supports_function_calling", "t"), ("supports_vision", "v"), ("supports_reasoning", "r"))
    return (
        _whole(told.get("max_input_tokens")),
        _whole(told.get("max_output_tokens")),
        *(_dollars(told.get(key)) for key in _keys("")),
        str(tiers[0] * 1000) if tiers else "",
        *(_dollars(told.get(key)) if above else "" for key in _keys(above)[:3]),
        "".join(letter for key, letter in can if told.get(key)),
    )


def _keys(above: str) -> tuple[str, ...]:
    kinds = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    return (*(f"{kind}{above}" for kind in kinds), f"cache_creation_input_token_cost{above}")


def _whole(value: Any) -> str:
    return str(int(value)) if value else ""


def _dollars(value: Any) -> str:
    """Per million tokens."""
    return "" if value is None else f"{round(float(value) * 1e6, 6):g}"


def main() -> None:
    source, date = sys.argv[1:3]
    found = sorted(rows(json.loads(Path(source).read_text(encoding="utf-8"))))
    told = f"# Models as of {date}. Dollars per million tokens. Made by scripts/catalogue."
    lines = [told, "\t".join(COLUMNS.split())]
    TARGET.write_text("\n".join([*lines, *("\t".join(row) for row in found)]) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(found)} models")


main()
