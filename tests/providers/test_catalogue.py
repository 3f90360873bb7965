"""Windows and prices that come with Sylph."""

import pytest

from sylph.core.messages import Usage
from sylph.core.provider import ModelInfo
from sylph.engine.model.gateway import compute_cost
from sylph.providers import catalogue
from sylph.providers.endpoint import Endpoint
from sylph.providers.vendors.table import VENDORS_BY_NAME


@pytest.mark.parametrize(
    ("provider", "model"),
    [("anthropic", "claude-opus-5"), ("openai", "gpt-5.2"), ("google", "gemini-2.5-pro"), ("xai", "grok-4.7"),
     ("deepseek", "deepseek-v4-pro"), ("moonshot", "kimi-k2.6"), ("qwen", "qwen3-max"), ("copilot", "claude-opus-5")],
)  # fmt: skip
def test_what_people_use_is_in_there(provider: str, model: str) -> None:
    info = catalogue.find_model_info(provider, model)
    assert info
    assert info.window
    assert info.window >= 100_000


def test_every_line_can_be_read_and_belongs_to_a_provider() -> None:
    for provider in VENDORS_BY_NAME:
        for model in catalogue.model_lines(provider):
            info = catalogue.find_model_info(provider, model)
            assert info
            assert all(price is None or price >= 0 for price in (info.price_in, info.price_out, info.price_cached))
    known = {line.partition("\t")[0] for line in catalogue.read_table().splitlines()[2:]}
    assert known <= set(VENDORS_BY_NAME)


def test_a_dated_name_is_its_model_and_another_dialect_is_the_same_service() -> None:
    plain = catalogue.find_model_info("openai", "gpt-5.2")
    assert plain
    dated = catalogue.find_model_info("openai-chat", "gpt-5.2-2031-01-01")
    assert dated
    assert (dated.name, dated.window, dated.price_in) == ("gpt-5.2-2031-01-01", plain.window, plain.price_in)
    assert catalogue.find_model_info("openai", "gpt-5.2-mine") is None
    assert catalogue.find_model_info("nobody", "gpt-5.2") is None


def test_what_is_configured_counts_first_and_the_rest_is_filled_in() -> None:
    own = ModelInfo(name="gpt-5.2", price_in=1)
    endpoint = Endpoint(name="openai", base_url="https://api.openai.com/v1", models={"gpt-5.2": own})
    info = endpoint.model_info("gpt-5.2", ModelInfo(name="gpt-5.2", window=5))
    listed = catalogue.find_model_info("openai", "gpt-5.2")
    assert listed
    assert (info.price_in, info.window, info.price_out) == (1, 5, listed.price_out)


def test_a_server_that_only_speaks_like_it_has_no_prices() -> None:
    elsewhere = Endpoint(name="openai", base_url="https://x.example", is_official=False).model_info("gpt-5.2")
    assert (elsewhere.price_in, elsewhere.above_in, bool(elsewhere.window)) == (None, None, True)
    assert Endpoint(name="openai", base_url="http://127.0.0.1:1", local=True).model_info("gpt-5.2").price_in == 0


def test_long_prompts_and_what_is_put_into_the_cache_have_their_own_price() -> None:
    info = ModelInfo(
        name="m", price_in=1_000_000, price_out=2_000_000, price_cached=100_000, price_written=1_250_000,
        above=1000, above_in=2_000_000, above_out=4_000_000, above_cached=200_000,
    )  # fmt: skip
    assert compute_cost(Usage(input=1000, output=10), info) == 1020
    assert compute_cost(Usage(input=1000, output=0, cached=500, written=100), info) == 400 + 50 + 125
    assert compute_cost(Usage(input=1001, output=10, cached=1), info) == 2040
