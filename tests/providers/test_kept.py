"""Lists of models that are kept."""

from pathlib import Path

import pytest
from tests.model_server import ModelServer

from sylph.core.provider import ModelInfo
from sylph.net.http_client import HttpClient
from sylph.providers import discover, model_list_cache
from sylph.providers.endpoint import Endpoint
from sylph.providers.model_list_cache import ModelListCache

MODELS = (ModelInfo(name="a/b", window=4096), ModelInfo(name="c"))


def test_what_is_kept_is_found_again_by_another_process(tmp_path: Path) -> None:
    ModelListCache(tmp_path / "models", "../odd name", "http://x").write(MODELS)
    again = ModelListCache(tmp_path / "models", "../odd name", "http://x")
    assert again.find_model("a/b") == MODELS[0]
    assert again.find_model("d") is None
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "models"]
    assert ModelListCache(tmp_path / "models", "../odd name", "http://elsewhere").read() is None


@pytest.mark.parametrize("damage", [b"", b"{", b'{"at": "x"}', b"\xff"])
def test_a_damaged_list_is_none(tmp_path: Path, damage: bytes) -> None:
    one = ModelListCache(tmp_path, "x", "http://x")
    one.write(MODELS)
    next(tmp_path.glob("*.json")).write_bytes(damage)
    assert ModelListCache(tmp_path, "x", "http://x").find_model("a/b") is None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ModelListCache(tmp_path / "file", "x", "http://x").write(MODELS)


async def test_a_fresh_list_is_not_asked_for_again_and_an_old_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer([], models=[{"id": "m", "context_length": 1234}]) as server:
        client = HttpClient()

        def endpoint() -> Endpoint:
            return Endpoint(
                name="far", base_url=server.url, model_list_cache=ModelListCache(tmp_path, "far", server.url)
            )

        assert [info.window for info in await discover.list_models(endpoint(), client)] == [1234]
        assert endpoint().model_info("m").window == 1234
        server.hang_up()
        await server.__aexit__(None, None, None)
        assert [info.name for info in await discover.list_models(endpoint(), client)] == ["m"]
        monkeypatch.setattr(model_list_cache, "FRESH", 0.0)
        assert await discover.list_models(endpoint(), client) == ()
        await client.close()
