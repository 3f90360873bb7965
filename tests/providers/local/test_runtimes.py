"""The runtime's process: shared, closed to others, and gone when nobody needs it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.patience import eventually
from tests.providers.local.test_gguf import model as model_file
from tests.small_model import is_alive, lent, needs_model

from sylph.core.errors import ProviderError
from sylph.net.http_client import HttpClient
from sylph.providers.local.models import LocalEndpoint, LocalModelInfo
from sylph.providers.local.runtime_process import RUN_FOLDER, borrow_runtime, thread_count


@pytest.fixture
def endpoint(tmp_path: Path) -> LocalEndpoint:
    return lent(tmp_path / "local")


def small(endpoint: LocalEndpoint) -> LocalModelInfo:
    found = endpoint.models["small"]
    assert isinstance(found, LocalModelInfo)
    return found


def copied(model: LocalModelInfo, path: Path, change: Callable[[bytes], bytes]) -> Path:
    path.write_bytes(change(Path(model.path).read_bytes()))
    return path


def test_one_core_is_left_to_others() -> None:
    assert [thread_count(0, cores) for cores in (1, 2, 8)] == [1, 1, 7]
    assert thread_count(3, 8) == 3


@needs_model
async def test_many_share_one_and_the_last_one_ends_it(endpoint: LocalEndpoint) -> None:
    borrowed = await asyncio.gather(*(borrow_runtime(endpoint, small(endpoint)) for _ in range(4)))
    pids = {address.pid for address, _ in borrowed}
    assert len(pids) == 1
    pid = pids.pop()
    for _, lease in borrowed[1:]:
        lease.release()
    await asyncio.sleep(0.2)
    assert is_alive(pid)
    borrowed[0][1].release()
    await eventually(lambda: not is_alive(pid))
    await eventually(lambda: not list((endpoint.folder / RUN_FOLDER).glob("*.json")))


@needs_model
async def test_one_that_has_died_is_started_again(endpoint: LocalEndpoint) -> None:
    address, lease = await borrow_runtime(endpoint, small(endpoint))
    await (await asyncio.create_subprocess_exec("kill", "-9", str(address.pid))).wait()
    await eventually(lambda: not is_alive(address.pid))
    other, another = await borrow_runtime(endpoint, small(endpoint))
    assert other.pid != address.pid
    assert other.key != address.key
    lease.release()
    another.release()
    await eventually(lambda: not is_alive(other.pid))


@needs_model
async def test_nobody_gets_in_without_the_key(endpoint: LocalEndpoint, client: HttpClient) -> None:
    address, lease = await borrow_runtime(endpoint, small(endpoint))
    guess = {"Authorization": "Bearer guess", "x-api-key": "guess", "Origin": "http://evil.example"}
    for path in ("v1/models", "v1/chat/completions", "v1/responses", "v1/messages", "props", "slots"):
        for headers in ({}, guess):
            async with client.post(f"{address.url}/{path}", b"{}", headers=headers) as response:
                said = await response.read()
            assert (response.status, b"Invalid API Key" in said) == (401, True)
            assert response.headers.get("access-control-allow-origin") not in ("*", "http://evil.example")
    files = [*(endpoint.folder / RUN_FOLDER).iterdir()]
    assert not [path for path in files if path.stat().st_mode & 0o077]
    lease.release()
    await eventually(lambda: not is_alive(address.pid))


@needs_model
async def test_a_file_that_is_gone_or_broken_is_said_to_be(endpoint: LocalEndpoint, tmp_path: Path) -> None:
    model = small(endpoint)
    with pytest.raises(ProviderError, match="is gone: /nowhere") as gone:
        await borrow_runtime(endpoint, replace(model, path="/nowhere"))
    assert not gone.value.is_retryable
    half = copied(model, tmp_path / "half.gguf", lambda data: data[:50_000_000])
    with pytest.raises(ProviderError, match="its end is missing") as broken:
        await borrow_runtime(endpoint, replace(model, path=str(half)))
    assert not broken.value.is_retryable


@needs_model
async def test_what_the_runtime_cannot_load_is_said_in_its_words(endpoint: LocalEndpoint, tmp_path: Path) -> None:
    strange = copied(small(endpoint), tmp_path / "strange.gguf", lambda data: data.replace(b"llama", b"lamma"))
    with pytest.raises(ProviderError, match=r"local/small cannot be loaded: .*lamma"):
        await borrow_runtime(endpoint, replace(small(endpoint), path=str(strange)))


# A runtime in the place of the real one, which does something when it is to load a model.
OTHER = """
import ctypes, os
from pathlib import Path

class CommonParams:
    def __getattr__(self, name):
        return CommonParams()

def Server(params):
    Path(__file__).with_name("pid").write_text(str(os.getpid()))
    LOADS
"""


def other(folder: Path, loads: str) -> tuple[LocalEndpoint, LocalModelInfo, Path]:
    """A service with that runtime, its model, and where it notes which process it is."""
    library = folder / "runtime-1" / "xllamacpp"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(OTHER.replace("LOADS", loads))
    (folder / "own.gguf").write_bytes(model_file())
    model = LocalModelInfo(name="own", path=str(folder / "own.gguf"))
    return LocalEndpoint(name="local", base_url="", folder=folder, models={"own": model}), model, library / "pid"


async def test_one_that_is_not_waited_for_any_more_is_not_loaded_to_its_end(tmp_path: Path) -> None:
    """While it loads no other thread of it can move, as is so with the real one."""
    endpoint, model, noted = other(tmp_path, "ctypes.PyDLL(None).sleep(600)")
    starting = asyncio.create_task(borrow_runtime(endpoint, model))
    await eventually(lambda: noted.exists() and noted.read_text() != "")
    pid = int(noted.read_text())
    assert is_alive(pid)
    starting.cancel()
    await eventually(lambda: not is_alive(pid))


@pytest.mark.parametrize(("number", "why"), [(4, "too old"), (9, "not be enough memory"), (11, "may be damaged")])
async def test_a_runtime_that_is_ended_by_a_signal_is_explained(tmp_path: Path, number: int, why: str) -> None:
    endpoint, model, _ = other(tmp_path, f"os.kill(os.getpid(), {number})")
    with pytest.raises(ProviderError, match=rf"ended by signal {number} .*{why}") as caught:
        await borrow_runtime(endpoint, model)
    assert not caught.value.is_retryable


async def test_a_port_without_a_lock_is_not_used(tmp_path: Path) -> None:
    """Should another version of the runtime not heed its key, nobody is sent there."""
    serves = "from tests_server import serve; return serve()"
    endpoint, model, noted = other(tmp_path, serves)
    noted.parent.with_name("tests_server.py").write_text(OPEN_TO_ALL)
    with pytest.raises(ProviderError, match="not kept closed"):
        await borrow_runtime(endpoint, model)


OPEN_TO_ALL = """
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

def serve():
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return SimpleNamespace(listening_address=f"http://127.0.0.1:{server.server_port}")
"""


async def test_without_the_runtime_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    model = LocalModelInfo(name="own", path=str(tmp_path / "own.gguf"))
    nothing = LocalEndpoint(name="local", base_url="", folder=tmp_path, models={"own": model})
    with pytest.raises(ProviderError, match="not installed") as caught:
        await borrow_runtime(nothing, model)
    assert caught.value.trouble.next[0] == f"sylph models add {tmp_path / 'own.gguf'}"
