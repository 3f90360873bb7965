import pytest

from sylph.providers.vendors.model_ranking import close_matches, pick_best_model

OPENAI = [
    "text-embedding-3-large",
    "whisper-1",
    "tts-1",
    "dall-e-3",
    "gpt-image-1",
    "omni-moderation-latest",
    "gpt-4o-realtime-preview",
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-5-pro",
    "gpt-5-mini",
    "gpt-5-2025-08-07",
    "gpt-5",
]


@pytest.mark.parametrize(
    ("models", "choice"),
    [
        (OPENAI, "gpt-5"),
        ([*OPENAI, "gpt-5.1"], "gpt-5.1"),
        (["gpt-5-mini", "gpt-5-2025-08-07"], "gpt-5-2025-08-07"),
        (["nomic-embed-text:latest", "llama3.2:3b", "qwen3:8b", "qwen3:30b"], "qwen3:30b"),
        (["llama3.1:8b", "llama3.2:3b"], "llama3.2:3b"),
        (["gemma3:4b", "mistral:7b"], "mistral:7b"),
        (["gpt-oss:20b", "gpt-4o"], "gpt-4o"),
        (["qwen/qwen3-4b", "bge-m3", "my-own-model"], "qwen/qwen3-4b"),
        (["b-model", "a-model"], "a-model"),
        (["text-embedding-3-large"], ""),
        ([], ""),
    ],
)
def test_the_best_model_is_chosen_by_the_ranking(models: list[str], choice: str) -> None:
    assert pick_best_model(models) == choice
    assert pick_best_model(reversed(models)) == choice


@pytest.mark.parametrize(
    ("meant", "known", "suggested"),
    [
        ("gpt-5o", ["gpt-4o", "whisper-1"], ("gpt-4o",)),
        ("QWEN3", ["qwen3:8b", "qwen3:30b", "llama3"], ("qwen3:8b", "qwen3:30b")),
        ("llama", ["meta/llama-3.3-70b-instruct"], ("meta/llama-3.3-70b-instruct",)),
        ("zzz", ["gpt-4o"], ()),
        ("", ["gpt-4o"], ()),
    ],
)
def test_a_name_that_is_not_quite_right_finds_what_was_meant(
    meant: str, known: list[str], suggested: tuple[str, ...]
) -> None:
    assert close_matches(meant, known) == suggested
