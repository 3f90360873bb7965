"""Which of many models to take when nobody said, and which was meant when the name is not quite right.

The ranking, best first: a family further up in FAMILIES; within one the newer version, the plain model before its
costly, small and dated variants, the one with more parameters, and last the alphabet, so that the choice is stable.
Models that do not chat (embeddings, speech, images, moderation …) are never taken.
"""

import difflib
import re
from collections.abc import Iterable, Sequence

# By how well they use tools, as far as one can say without asking for anybody's taste.
FAMILIES = (
    "claude-sonnet",
    "gpt",
    "claude",
    "gemini",
    "glm",
    "kimi",
    "deepseek",
    "qwen",
    "gpt-oss",
    "devstral",
    "mistral",
    "granite",
    "llama",
    "gemma",
    "phi",
)
NO_CHAT = (
    r"embed|bge-|e5-|whisper|tts|audio|speech|transcribe|realtime|dall-e|image|sora|veo|imagen|diffusion|flux"
    r"|moderation|guard|rerank|colbert|davinci|babbage|instruct-0914|search-preview|computer-use|ocr|clip"
)
COSTLY = r"(^|[-_.])(pro|max|ultra|deep-research|opus)($|[-_.:])"
SMALL = r"(^|[-_.])(mini|nano|tiny|small|lite|flash|haiku)($|[-_.:])"
DATED = r"\d{4}-\d{2}-\d{2}|-\d{6,8}|-\d{4}($|-)|preview|latest"
PARAMETERS = r"(?:^|[^a-z0-9.])(?:\d+x)?(\d+(?:\.\d+)?)b(?:[^a-z]|$)"
VERSION = r"(\d+(?:\.\d+)?)(?!\d*b)"


def pick_best_model(models: Iterable[str]) -> str:
    """The model to take when nobody chose one; empty if none of them chats."""
    return min(chat_models(models), key=_rank_model, default="")


def chat_models(models: Iterable[str]) -> list[str]:
    return [model for model in models if not re.search(NO_CHAT, model.lower())]


def close_matches(model: str, known: Sequence[str]) -> tuple[str, ...]:
    """Names that may have been meant, the likeliest first. Only ever shown: nothing is replaced silently."""
    wanted = model.lower()
    within = [name for name in known if wanted and wanted in name.lower()]
    folded = {name.lower(): name for name in known}
    similar = [folded[name] for name in difflib.get_close_matches(wanted, folded, n=3)]
    return tuple(dict.fromkeys([*similar, *within]))[:3]


def _rank_model(model: str) -> tuple[int, float, bool, bool, bool, float, str]:
    name = model.lower().rpartition("/")[2]
    family = _family_rank(name)
    return (
        family,
        -_parse_version(name),
        re.search(COSTLY, name) is not None,
        re.search(SMALL, name) is not None,
        re.search(DATED, name) is not None,
        -_parse_parameter_count(name),
        model,
    )


def _family_rank(name: str) -> int:
    matches = [at for at, family in enumerate(FAMILIES) if name.startswith(family)]
    return max(matches, key=lambda at: len(FAMILIES[at]), default=len(FAMILIES))


def _parse_version(name: str) -> float:
    found = re.search(VERSION, name.partition(":")[0])
    number = float(found[1]) if found else 0.0
    # A larger number is a date or a size, not a version.
    return number if number < 100 else 0.0


def _parse_parameter_count(name: str) -> float:
    found = re.search(PARAMETERS, name)
    return float(found[1]) if found else 0.0
