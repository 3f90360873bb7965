"""After a crash a file itself tells whether it was changed."""

import msgspec
import pytest
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.tool import ToolResult
from sylph.tools.files.atomic_write import draft_path

WRITE = {"path": "a.txt", "content": "new\n"}
EDIT = {"path": "a.txt", "old": "old", "new": "new"}
BOTH = [("write", WRITE), ("edit", EDIT)]


async def foreseen(desk: Desk, name: str, arguments: dict[str, str]) -> None:
    """What the log would hold: written down before the change."""
    tool = TOOLS[name]
    assert tool.foresee
    desk.foreseen = dict(await tool.foresee(msgspec.convert(arguments, tool.args), desk.context))


async def recovered(desk: Desk, name: str, arguments: dict[str, str]) -> ToolResult | None:
    tool = TOOLS[name]
    assert tool.recover
    return await tool.recover(msgspec.convert(arguments, tool.args), desk.context)


@pytest.mark.parametrize(("name", "arguments"), BOTH)
async def test_a_change_that_was_made_is_known(desk: Desk, name: str, arguments: dict[str, str]) -> None:
    desk.write("a.txt", "old\n")
    await foreseen(desk, name, arguments)
    await desk.use(name, **arguments)
    result = await recovered(desk, name, arguments)
    assert result
    assert "was made before" in result.text


@pytest.mark.parametrize(("name", "arguments"), BOTH)
async def test_a_change_that_was_not_made_can_be_made(desk: Desk, name: str, arguments: dict[str, str]) -> None:
    desk.write("a.txt", "old\n")
    await foreseen(desk, name, arguments)
    assert await recovered(desk, name, arguments) is None


async def test_a_new_file_that_was_not_made_can_be_made(desk: Desk) -> None:
    await foreseen(desk, "write", WRITE)
    assert await recovered(desk, "write", WRITE) is None


@pytest.mark.parametrize(("name", "arguments"), BOTH)
async def test_if_somebody_else_was_there_nobody_can_tell(desk: Desk, name: str, arguments: dict[str, str]) -> None:
    desk.write("a.txt", "old\n")
    await foreseen(desk, name, arguments)
    desk.write("a.txt", "something else\n")
    with refused("unknown"):
        await recovered(desk, name, arguments)


async def test_without_a_note_nobody_can_tell(desk: Desk) -> None:
    with refused("unknown"):
        await recovered(desk, "write", WRITE)


@pytest.mark.parametrize(("name", "arguments"), BOTH)
async def test_half_written_content_is_cleared_away(desk: Desk, name: str, arguments: dict[str, str]) -> None:
    path = desk.write("a.txt", "old\n")
    await foreseen(desk, name, arguments)
    draft_path(path, desk.context.idempotency_key).write_text("ne")
    assert await recovered(desk, name, arguments) is None
    await desk.use(name, **arguments)
    assert ([file.name for file in desk.workspace.iterdir()], path.read_text()) == (["a.txt"], "new\n")
