"""Files too large to be copied, and redos that left something: what comes back, what is left, what is advised."""

import os
from pathlib import Path

import pytest
from tests.engine.undo.test_undo import changed_gaps, sh, stage
from tests.engine.undo.trees import tree_of

from sylph.core import commands
from sylph.core.errors import UserError
from sylph.testing import begin_session, call_tool, play_turn, say


@pytest.fixture
def work(home: Path) -> Path:
    folder = home / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "src" / "b.py").write_text("b = 1\n")
    return folder


async def test_a_large_file_that_was_deleted_comes_back_from_the_trash_and_goes_again(home: Path, work: Path) -> None:
    big, deep = work / "big", work / "src" / "big.bin"
    for file in (big, deep):
        file.write_bytes(os.urandom(20_000))
    before = tree_of(work)
    async with stage(home, [call_tool("delete", path="big"), call_tool("delete", path="src"), say("")]) as engine:
        id = await begin_session(engine, work)
        assert changed_gaps(await play_turn(engine, id, "go")) == []
        for _ in range(2):
            await engine.send(id, commands.Undo())
            assert tree_of(work) == before
            await engine.send(id, commands.Undo(redo=True))
            assert not big.exists()
            assert not deep.exists()


async def test_force_is_only_spoken_of_where_it_helps(home: Path, work: Path) -> None:
    (work / "big").write_bytes(b"x" * 20_000)
    async with stage(home, [sh("rm big"), say(""), sh("head -c 20000 /dev/zero > made"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "one")
        for content in ("", "mine"):
            if content:
                (work / "big").write_text(content)
            with pytest.raises(UserError, match=r"big: what it held was not kept") as gone:
                await engine.send(id, commands.Undo())
            assert not any("--force" in step for step in gone.value.trouble.next)
        await play_turn(engine, id, "two")
        with pytest.raises(UserError, match=r"made: it is too large to be kept") as large:
            await engine.send(id, commands.Undo())
        (said,) = large.value.trouble.next
        assert said.startswith("--force also puts away what is too large to be kept, for good")
        assert (work / "made").exists()
        await engine.send(id, commands.Undo(force=True))
        assert not (work / "made").exists()


async def test_the_mode_of_a_large_file_comes_back(home: Path, work: Path) -> None:
    (work / "big").write_bytes(b"x" * 20_000)
    before = tree_of(work)
    async with stage(home, [sh("chmod 600 big"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        await engine.send(id, commands.Undo())
        assert tree_of(work) == before


async def test_a_further_redo_does_what_the_first_had_to_leave(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo x > a.txt; echo x > src/b.py"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "go")
        await engine.send(id, commands.Undo())
        (work / "src" / "b.py").write_text("mine\n")
        await engine.send(id, commands.Undo(redo=True))
        assert [(work / name).read_text() for name in ("a.txt", "src/b.py")] == ["x\n", "mine\n"]
        with pytest.raises(UserError, match=r"src/b.py: it was changed since") as stuck:
            await engine.send(id, commands.Undo(redo=True))
        assert any("--force" in step for step in stuck.value.trouble.next)
        await engine.send(id, commands.Undo(redo=True, force=True))
        assert (work / "src" / "b.py").read_text() == "x\n"
        with pytest.raises(UserError, match="no undo to take back"):
            await engine.send(id, commands.Undo(redo=True))


async def test_what_a_redo_left_does_not_hide_an_earlier_undo(home: Path, work: Path) -> None:
    async with stage(home, [sh("echo 1 > a.txt; echo 1 > n"), say(""), sh("echo 2 > m"), say("")]) as engine:
        id = await begin_session(engine, work)
        await play_turn(engine, id, "one")
        await play_turn(engine, id, "two")
        await engine.send(id, commands.Undo())
        await engine.send(id, commands.Undo())
        (work / "a.txt").write_text("mine\n")
        await engine.send(id, commands.Undo(redo=True))
        await engine.send(id, commands.Undo(redo=True))
        assert ((work / "n").exists(), (work / "m").exists(), (work / "a.txt").read_text()) == (True, True, "mine\n")
