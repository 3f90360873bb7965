"""How tests wait is tested itself."""

import asyncio
from pathlib import Path

import pytest
from tests import patience
from tests.patience import eventually, eventually_true, waiting


async def test_the_answer_is_returned_as_soon_as_it_is_true() -> None:
    answers = iter((0, "", None, "now"))
    assert await eventually(lambda: next(answers)) == "now"

    async def later() -> list[int]:
        return [1]

    assert await eventually(later) == [1]
    assert eventually_true(lambda: "here") == "here"


async def test_what_never_comes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.05)
    with pytest.raises(AssertionError, match=r"in vain for: the moon \(last seen: 0\)"):
        await eventually(lambda: 0, "the moon")
    with pytest.raises(AssertionError, match=r"test_patience\.py:\d+"):
        eventually_true(lambda: False)


async def test_a_command_waits_for_its_file(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec("sh", "-c", f"{waiting('go')}; rm go", cwd=tmp_path)
    (tmp_path / "go").touch()
    assert await process.wait() == 0
