"""Providers as data, and what becomes of a row together with what is configured."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import asdict

from sylph.compose.models import build_model_sources, missing_steps
from sylph.config import Config, load_config
from sylph.core.errors import UserError
from sylph.providers import discover
from sylph.providers.endpoint import Endpoint
from sylph.providers.vendors.table import VENDORS, VENDORS_BY_NAME, Vendor, vendor_url, vendor_variables

PROMISED = [
    "anthropic",
    "openai",
    "openai-chat",
    "google",
    "bedrock",
    "groq",
    "openrouter",
    "together",
    "deepseek",
    "minimax",
    "moonshot",
    "xai",
    "qwen",
    "mistral",
    "cerebras",
    "azure",
    "vertex",
    "copilot",
    "chatgpt",
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
]


def loaded(home: Path, text: str = "", **environ: str) -> Config:
    (home / "config.toml").write_text(f"probe = false\n{text}")
    return load_config({"SYLPH_HOME": str(home), **environ})


def endpoints(config: Config) -> dict[str, Endpoint]:
    return {each.name: each for each in discover.all_endpoints(build_model_sources(config))}


def test_every_promised_provider_has_a_row() -> None:
    assert sorted(VENDORS_BY_NAME) == sorted(PROMISED)
    assert len(VENDORS) == len(VENDORS_BY_NAME)


@pytest.mark.parametrize("row", VENDORS, ids=lambda row: row.name)
def test_a_row_is_whole(row: Vendor) -> None:
    filled = vendor_url(row, dict.fromkeys(row.placeholder_variables, "x"))
    parts = urlsplit(filled)
    assert (parts.scheme, bool(parts.hostname)) == ("http" if row.local else "https", True)
    assert not filled.endswith("/")
    assert row.key_variables or row.variant_of or row.auth_method in ("github", "chatgpt")
    assert not row.variant_of or row.variant_of in VENDORS_BY_NAME
    assert not row.url_suffix or row.base_url.endswith(f"/{row.url_suffix}")


@pytest.mark.parametrize("row", [row for row in VENDORS if row.key_variables], ids=lambda row: row.name)
def test_a_key_in_the_vendors_variable_sets_a_provider_up(row: Vendor, tmp_path: Path) -> None:
    blanks = {names[0]: "x" for names in row.placeholder_variables.values()}
    found = endpoints(loaded(tmp_path, **{row.key_variables[0]: "sk-test"}, **blanks))[row.name]
    assert (found.api_key, found.key_from) == ("sk-test", row.key_variables[0])
    assert found.base_url == vendor_url(row, dict.fromkeys(row.placeholder_variables, "x"))
    assert (found.dialect, found.key_header, found.is_official) == (row.dialect, row.key_header, True)


@pytest.mark.parametrize("row", [row for row in VENDORS if row.url_variable], ids=lambda row: row.name)
def test_the_vendors_own_variable_for_the_address_is_honoured(row: Vendor, tmp_path: Path) -> None:
    blanks = {names[0]: "x" for names in row.placeholder_variables.values()}
    found = endpoints(loaded(tmp_path, **{row.url_variable: "http://127.0.0.1:7/"}, **blanks))[row.name]
    end = row.url_suffix.format_map(dict.fromkeys(row.placeholder_variables, "x"))
    assert found.base_url.startswith("http://127.0.0.1:7")
    assert found.base_url.removesuffix(f"/{end}").rstrip("/") in ("http://127.0.0.1:7", "http://127.0.0.1:7/v1")
    assert not found.is_official
    assert found.local


def test_where_two_variables_hold_a_key_the_first_counts(tmp_path: Path) -> None:
    found = endpoints(loaded(tmp_path, GOOGLE_API_KEY="two", GEMINI_API_KEY="one"))["google"]
    assert (found.api_key, found.key_from) == ("one", "GEMINI_API_KEY")


def test_no_variable_stands_for_two_things() -> None:
    named = [
        each
        for row in VENDORS
        for each in (*row.key_variables, row.url_variable, *sum(row.placeholder_variables.values(), ()))
        if each
    ]
    assert len(named) == len(set(named)) == len(vendor_variables())


def test_openai_chat_is_the_same_service_in_the_other_dialect(tmp_path: Path) -> None:
    sources = build_model_sources(loaded(tmp_path, OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1:7/v1"))
    (listed,), (twin,) = sources.providers, sources.unlisted
    assert (listed.name, listed.dialect, twin.name, twin.dialect) == ("openai", "responses", "openai-chat", "chat")
    same = ("base_url", "api_key", "key_from", "is_official")
    assert all(asdict(listed)[name] == asdict(twin)[name] for name in same)


def test_the_order_is_that_of_the_file_and_then_of_the_table(tmp_path: Path) -> None:
    text = "[providers.mine]\nbase_url = 'http://127.0.0.1:7/v1'\n"
    sources = build_model_sources(loaded(tmp_path, text, GROQ_API_KEY="k", ANTHROPIC_API_KEY="k"))
    assert [each.name for each in sources.providers] == ["mine", "anthropic", "groq"]


def test_any_compatible_address_is_a_provider(tmp_path: Path) -> None:
    text = """
    [providers.gateway]
    base_url = "http://127.0.0.1:7/anthropic/"
    dialect = "anthropic"
    headers = { "X-Team" = "blue" }
    [providers.groq]
    base_url = "http://127.0.0.1:8/v1"
    """
    found = endpoints(loaded(tmp_path, text))
    gateway = found["gateway"]
    assert (gateway.dialect, gateway.base_url) == ("anthropic", "http://127.0.0.1:7/anthropic")
    assert gateway.headers == {"X-Team": "blue"}
    # What the file says is taken as it is: only the vendor's variable leaves out the end.
    assert found["groq"].base_url == "http://127.0.0.1:8/v1"


def test_a_region_alone_sets_nothing_up(tmp_path: Path) -> None:
    assert endpoints(loaded(tmp_path, AWS_REGION="eu-west-1", GOOGLE_CLOUD_PROJECT="p")) == {}


def test_a_key_without_its_place_sets_nothing_up_and_what_is_missing_is_told(tmp_path: Path) -> None:
    config = loaded(tmp_path, AZURE_OPENAI_API_KEY="k")
    assert endpoints(config) == {}
    (step,) = missing_steps("azure", config)
    assert "AZURE_OPENAI_RESOURCE" in step
    assert "providers.azure.place.resource" in step
    assert "set GROQ_API_KEY to a key of Groq" in missing_steps("groq", config)[0]
    assert "set OPENAI_API_KEY" in missing_steps("openai-chat", config)[0]
    assert missing_steps("ollama", config) == missing_steps("nobody", config) == ()


async def test_amazons_keys_come_from_variables_or_from_a_profile(tmp_path: Path) -> None:
    pair = {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
        "AWS_REGION": "eu-west-1",
    }
    found = endpoints(loaded(tmp_path, **pair))["bedrock"]
    assert (found.api_key, found.key_from) == ("AKIA:s:t", "AWS_ACCESS_KEY_ID")
    assert found.base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert endpoints(loaded(tmp_path, **{**pair, "AWS_BEARER_TOKEN_BEDROCK": "b"}))["bedrock"].api_key == "b"
    assert endpoints(loaded(tmp_path, AWS_ACCESS_KEY_ID="AKIA")) == {}
    (tmp_path / "credentials").write_text("[work]\naws_access_key_id = AKIA\naws_secret_access_key = s\n")
    told = {"AWS_PROFILE": "work", "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "HOME": str(tmp_path)}
    assert await endpoints(loaded(tmp_path, **told))["bedrock"].resolve_key() == "AKIA:s"


def test_keys_for_all_of_amazon_choose_no_model_by_themselves(tmp_path: Path) -> None:
    pair = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s"}
    shy = [build_model_sources(loaded(tmp_path, **each)) for each in (pair, {"AWS_PROFILE": "work"})]
    assert [(each.providers, [twin.name for twin in each.unlisted]) for each in shy] == [((), ["bedrock"])] * 2
    told = ("[providers.bedrock]\nkey_command = 'x'\n", "[providers.bedrock.place]\nprofile = 'work'\n")
    chosen = [build_model_sources(loaded(tmp_path, text)) for text in told]
    chosen.append(build_model_sources(loaded(tmp_path, AWS_BEARER_TOKEN_BEDROCK="b", **pair)))
    assert [[each.name for each in one.providers] for one in chosen] == [["bedrock"]] * 3


async def test_a_command_may_print_the_key(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[providers.vertex]\nkey_command = 'echo ya29'\n", GOOGLE_CLOUD_PROJECT="p")
    found = endpoints(config)["vertex"]
    assert (await found.resolve_key(), found.key_from) == ("ya29", "providers.vertex.key_command")
    assert found.base_url.endswith("/v1/projects/p/locations/global/publishers/google")


def test_other_ways_in_are_told(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert missing_steps("bedrock", config)[-1].endswith("or AWS_PROFILE")
    assert "gcloud auth print-access-token" in missing_steps("vertex", config)[-1]


def test_a_name_that_is_in_no_row_needs_an_address(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"providers\.mine\.base_url: where this service is, is missing"):
        build_model_sources(loaded(tmp_path, "[providers.mine]\napi_key = 'k'\n"))


def test_a_dialect_that_nobody_speaks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"providers\.mine\.dialect: must be one of"):
        loaded(tmp_path, "[providers.mine]\ndialect = 'latin'\n")
