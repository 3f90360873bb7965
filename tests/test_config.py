"""What is configured, and what is told where that is wrong."""

from pathlib import Path

import pytest

from sylph.config import Config, LimitSettings, load_config, locate_config
from sylph.config.setting_path import (
    effective_values,
    find_faults,
    format_value,
    list_settings,
    mask_secret,
    split_path,
    type_at,
)
from sylph.core.errors import UserError


def loaded(home: Path, text: str = "", **environ: str) -> Config:
    (home / "config.toml").write_text(text)
    return load_config({"SYLPH_HOME": str(home), **environ})


def test_nothing_has_to_be_configured(tmp_path: Path) -> None:
    config = load_config({"SYLPH_HOME": str(tmp_path)})
    assert config.settings.mode == "ask"
    assert config.settings.limits == LimitSettings()
    assert (config.data, config.file) == (tmp_path / "data", tmp_path / "config.toml")
    assert config.origins == {}


def test_places_can_be_moved(tmp_path: Path) -> None:
    config = locate_config({"SYLPH_HOME": "/h", "SYLPH_DATA": "/d", "SYLPH_CONFIG": "/c.toml"})
    assert (config.home, config.data, config.file) == (Path("/h"), Path("/d"), Path("/c.toml"))


def test_the_file_is_read_and_named_as_the_origin(tmp_path: Path) -> None:
    config = loaded(tmp_path, "mode = 'plan'\n[limits]\nrounds = 7\n")
    assert config.settings.mode == "plan"
    assert config.settings.limits.rounds == 7
    assert config.origins["limits.rounds"] == str(tmp_path / "config.toml")


def test_a_variable_wins_over_the_file(tmp_path: Path) -> None:
    config = loaded(tmp_path, "model = 'a/b'\n", SYLPH_MODEL="c/d", SYLPH_LOG_LEVEL="DEBUG")
    assert config.settings.model == "c/d"
    assert config.settings.log_level == "debug"
    assert config.origins["model"] == "SYLPH_MODEL"


def test_an_empty_variable_says_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, "model = 'a/b'\n", SYLPH_MODEL="").settings.model == "a/b"


def test_variables_of_a_service_join_what_the_file_says_of_it(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[providers.openai.models.x]\nwindow = 9\n", OPENAI_API_KEY="k")
    assert config.settings.providers["openai"].api_key == "k"
    assert config.settings.providers["openai"].models["x"].window == 9


def test_a_key_is_looked_up_where_the_file_says(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[providers.work]\napi_key_env = 'WORK_KEY'\n", WORK_KEY="secret")
    assert config.settings.providers["work"].api_key == "secret"
    assert config.origins["providers.work.api_key"] == "WORK_KEY"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modell = 'x'\n", "config.toml: modell: there is no such key. Did you mean 'model'?"),
        (
            "mode = 'fast'\n",
            'config.toml: mode: must be one of trust, auto_noselfmod, ask, sandbox, plan (it is "fast")',
        ),
        ("limits = 3\n", "config.toml: limits: expected a table (it is 3)"),
        ("[limits]\nrounds = 0\n", "config.toml: limits.rounds: expected int >= 1 (it is 0)"),
        ("[limits]\nrounds = 'x'\n", 'config.toml: limits.rounds: expected int, got str (it is "x")'),
        ("[providers.a]\nmodel = 1\n", "config.toml: providers.a.model: there is no such key. Did you mean 'models'?"),
        ("[providers.a]\napi_key = 12345\n", "config.toml: providers.a.api_key: expected str, got int (it is …)"),
        ("x = \n", "config.toml is not valid TOML: Invalid value (at line 1, column 5)"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/{said}"
    assert caught.value.trouble.kind == "config"


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="SYLPH_LOG_LEVEL: log_level: must be one of debug") as caught:
        loaded(tmp_path, "", SYLPH_LOG_LEVEL="loud")
    assert caught.value.trouble.next[0] == "change or unset SYLPH_LOG_LEVEL"


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="cannot be read"):
        load_config({"SYLPH_HOME": str(tmp_path)})


def test_every_fault_is_found() -> None:
    assert [fault.key for fault in find_faults({"a": 1, "limits": {"b": 2, "rounds": "x"}})] == [
        "a",
        "limits.b",
        "limits.rounds",
    ]


def test_keys_are_split_as_in_toml() -> None:
    assert split_path('providers.x.models."gpt-4.1".window') == ("providers", "x", "models", "gpt-4.1", "window")
    with pytest.raises(UserError):
        split_path("a..b")


def test_the_type_of_a_key() -> None:
    assert type_at("probe") is not None
    with pytest.raises(UserError, match=r"Did you mean 'limits\.rounds'"):
        type_at("limit.rounds")


def test_every_key_is_explained() -> None:
    assert all(key.help and key.type for key in list_settings())


def test_secrets_are_masked() -> None:
    assert format_value("providers.x.api_key", "sk-0123456789abcdef") == "…cdef"
    assert mask_secret("short") == "…"
    assert format_value("model", "a/b") == '"a/b"'


def test_effective_values_hold_the_defaults(tmp_path: Path) -> None:
    values = effective_values(loaded(tmp_path, "[providers.a]\nbase_url = 'http://x'\n").settings)
    assert values["providers.a.base_url"] == "http://x"
    assert values["limits.retries"] == 4


def test_the_terminal_and_the_proxies(tmp_path: Path) -> None:
    config = locate_config(
        {"TERM": "xterm", "NO_COLOR": "1", "EDITOR": "ed", "https_proxy": "http://p", "NO_PROXY": "a,b"}
    )
    assert not config.terminal.colour
    assert config.terminal.editor == "ed"
    assert (config.proxy.https, config.proxy.no) == ("http://p", "a,b")
    assert locate_config({"TERM": "dumb"}).terminal.dumb


@pytest.mark.parametrize("told", ['[redact]\nallow = ["("]\n', '[redact.patterns]\nbadge = "EMP-[0-9"\n'])
def test_a_pattern_that_is_none_is_told_before_it_stops_everything(tmp_path: Path, told: str) -> None:
    with pytest.raises(UserError, match="is no regular expression"):
        loaded(tmp_path, told)


def test_an_address_that_is_none_is_refused_where_it_is_told(tmp_path: Path) -> None:
    for wrong in ("not a url", "host/v1", "ftp://host", "http://", "https://[::1", "http://host:port"):
        with pytest.raises(UserError, match=r"providers\.mine\.base_url: must be an address like https://host/v1"):
            loaded(tmp_path, f'[providers.mine]\nbase_url = "{wrong}"\n')
    for right in ("http://127.0.0.1:7/v1", "https://host", "http://[::1]:8080/v1"):
        assert (
            loaded(tmp_path, f'[providers.mine]\nbase_url = "{right}"\n').settings.providers["mine"].base_url == right
        )
    # As OLLAMA_HOST may be written.
    for right in ("127.0.0.1:11434", ":11434", "host", "http://host"):
        assert loaded(tmp_path, f'[providers.ollama]\nbase_url = "{right}"\n').settings.providers["ollama"].base_url
