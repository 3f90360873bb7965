"""Moving, copying, deleting and making: each in one place at any moment, also after a crash."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.errors import ToolError
from sylph.core.tool import CallAssessment, ToolResult
from sylph.tools.files import atomic_write, relocate
from sylph.tools.files.workspace_paths import resolve_entry, resolve_inside, resolve_writable


async def test_a_file_and_a_folder_are_moved(desk: Desk) -> None:
    desk.write("a.txt", "a").chmod(0o640)
    desk.write("d/e.txt", "e")
    await desk.use("move", path="a.txt", to="new/b.txt")
    await desk.use("move", path="d", to="new/d")
    assert (desk.workspace / "new/b.txt").read_text() == "a"
    assert (desk.workspace / "new/b.txt").stat().st_mode & 0o777 == 0o640
    assert (desk.workspace / "new/d/e.txt").read_text() == "e"
    assert not (desk.workspace / "a.txt").exists()


async def test_a_link_is_moved_and_deleted_itself(desk: Desk) -> None:
    desk.write("real.txt", "x")
    (desk.workspace / "link").symlink_to("real.txt")
    (desk.workspace / "out").symlink_to(desk.workspace.parent / "outside")
    await desk.use("move", path="link", to="other")
    assert (desk.workspace / "other").is_symlink()
    await desk.use("delete", path="out")
    assert not (desk.workspace / "out").is_symlink()
    assert (desk.workspace.parent / "outside/secret.txt").read_text() == "secret"
    assert (desk.workspace / "real.txt").read_text() == "x"


async def test_nothing_is_ever_overwritten(desk: Desk) -> None:
    desk.write("a.txt", "a")
    desk.write("b.txt", "b")
    (desk.workspace / "dangling").symlink_to("nowhere")
    for to in ("b.txt", "dangling"):
        for name in ("move", "copy"):
            with refused("exists"):
                await desk.use(name, path="a.txt", to=to)
    assert (desk.workspace / "b.txt").read_text() == "b"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("move", {"path": "d", "to": "d/x"}, "bad_path"),
        ("move", {"path": "d", "to": "d"}, "bad_path"),
        ("move", {"path": "nope", "to": "x"}, "not_found"),
        ("move", {"path": "d", "to": "../x"}, "outside_workspace"),
        ("move", {"path": "d", "to": "out/x"}, "outside_workspace"),
        ("move", {"path": "out/secret.txt", "to": "x"}, "outside_workspace"),
        ("move", {"path": ".git/config", "to": "x"}, "protected_path"),
        ("move", {"path": "trash:../../x", "to": "x"}, "not_found"),
        ("move", {"path": "trash:t9_c9", "to": "x"}, "not_found"),
        ("copy", {"path": "out/secret.txt", "to": "x"}, "outside_workspace"),
        ("copy", {"path": "d", "to": "d/x"}, "bad_path"),
        ("copy", {"path": "pipe", "to": "x"}, "not_a_file"),
        ("delete", {"path": "."}, "bad_path"),
        ("delete", {"path": "d/.."}, "bad_path"),
        ("delete", {"path": "nope"}, "not_found"),
        ("delete", {"path": ".git"}, "protected_path"),
        ("create_directory", {"path": "d/file"}, "exists"),
        ("create_directory", {"path": "d/file/x"}, "not_a_directory"),
        ("create_directory", {"path": "out/x"}, "outside_workspace"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_moves(
    desk: Desk, name: str, arguments: dict[str, str], kind: str
) -> None:
    desk.write("d/file", "x")
    desk.write(".git/config", "x")
    os.mkfifo(desk.workspace / "pipe")
    (desk.workspace / "out").symlink_to(desk.workspace.parent / "outside")
    before = sorted(str(path) for path in desk.workspace.parent.rglob("*"))
    with refused(kind):
        await desk.use(name, **arguments)
    assert sorted(str(path) for path in desk.workspace.parent.rglob("*") if "runs" not in path.parts) == before


async def test_what_was_deleted_can_be_brought_back(desk: Desk) -> None:
    desk.write("d/a.txt", "a")
    desk.write("d/run.sh", "x").chmod(0o755)
    result = await desk.use("delete", path="d")
    assert "2 files, 2 bytes" in result.text
    assert 'move path="trash:t1_c1" to="d"' in result.text
    assert not (desk.workspace / "d").exists()
    origin = msgspec.json.decode((desk.private / "trash/t1_c1/origin.json").read_bytes())
    assert origin["path"] == "d"
    await desk.use("move", path="trash:t1_c1", to="d")
    assert (desk.workspace / "d/a.txt").read_text() == "a"
    assert os.access(desk.workspace / "d/run.sh", os.X_OK)


async def test_a_copy_keeps_modes_and_links(desk: Desk) -> None:
    desk.write("d/run.sh", "x").chmod(0o755)
    (desk.workspace / "d/link").symlink_to("run.sh")
    result = await desk.use("copy", path="d", to="copies/d")
    assert "2 files" in result.text
    assert os.access(desk.workspace / "copies/d/run.sh", os.X_OK)
    assert (desk.workspace / "copies/d/link").is_symlink()


def elsewhere(place: Path) -> Path:
    """A folder on another file system."""
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK) or shm.stat().st_dev == place.stat().st_dev:
        pytest.skip("there is no other file system to write to")
    return shm / f"sylph-test-{os.getpid()}"


async def test_across_file_systems_it_is_copied_first(desk: Desk) -> None:
    desk.private = elsewhere(desk.workspace)
    try:
        desk.write("d/a.txt", "a")
        await desk.use("delete", path="d")
        assert (desk.private / "trash/t1_c1/item/a.txt").read_text() == "a"
        assert not list(desk.workspace.rglob("*"))
        await desk.use("move", path="trash:t1_c1", to="d")
        assert (desk.workspace / "d/a.txt").read_text() == "a"
    finally:
        relocate.remove_path(desk.private)


async def foreseen(desk: Desk, name: str, **arguments: str) -> Any:
    tool = TOOLS[name]
    assert tool.foresee
    args = msgspec.convert(arguments, tool.args)
    desk.foreseen = dict(await tool.foresee(args, desk.context))
    return args


async def recovered(desk: Desk, name: str, args: object) -> ToolResult | None:
    recover = TOOLS[name].recover
    assert recover
    return await recover(args, desk.context)


CALLS: list[tuple[str, dict[str, str]]] = [
    ("move", {"path": "d", "to": "e"}),
    ("copy", {"path": "d", "to": "e"}),
    ("copy", {"path": "d/a.txt", "to": "e"}),
    ("delete", {"path": "d"}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_after_a_crash_it_is_known_whether_it_was_done(desk: Desk, name: str, arguments: dict[str, str]) -> None:
    desk.write("d/a.txt", "a")
    args = await foreseen(desk, name, **arguments)
    assert await recovered(desk, name, args) is None
    await desk.use(name, **arguments)
    assert (await recovered(desk, name, args) or ToolResult(text="")).text.endswith("before Sylph was interrupted.")


@pytest.mark.parametrize("name", ["move", "delete"])
async def test_if_it_is_nowhere_nobody_can_tell(desk: Desk, name: str) -> None:
    path = desk.write("a.txt", "a")
    args = await foreseen(desk, name, path="a.txt", **({"to": "b.txt"} if name == "move" else {}))
    path.unlink()
    with refused("unknown"):
        await recovered(desk, name, args)


async def test_half_a_copy_is_cleared_away(desk: Desk) -> None:
    desk.write("d/a.txt", "a")
    args = await foreseen(desk, "copy", path="d", to="e")
    draft = atomic_write.draft_path(desk.workspace / "e", desk.context.idempotency_key)
    (draft / "half").mkdir(parents=True)
    assert await recovered(desk, "copy", args) is None
    assert not draft.exists()
    desk.write("e", "somebody else's")
    with refused("unknown"):
        await recovered(desk, "copy", args)


async def test_half_a_move_across_file_systems_is_finished(desk: Desk) -> None:
    """As it is when the copy is whole and the old one was put aside."""
    source, target = desk.write("a.txt", "a"), desk.workspace / "b.txt"
    args = await foreseen(desk, "move", path="a.txt", to="b.txt")
    key = desk.context.idempotency_key
    atomic_write.draft_path(target, key).write_text("a")
    source.rename(relocate.aside_path(source, key))
    assert await recovered(desk, "move", args)
    assert target.read_text() == "a"
    assert [path.name for path in desk.workspace.iterdir()] == ["b.txt"]


async def test_a_folder_that_is_there_is_no_trouble(desk: Desk) -> None:
    assert (await desk.use("create_directory", path="a/b")).text == "Made a/b/."
    assert "already" in (await desk.use("create_directory", path="a/b")).text
    assert (desk.workspace / "a/b").is_dir()


def test_each_says_beforehand_what_it_would_touch(desk: Desk) -> None:
    desk.write("a.txt", "a")

    def judged(name: str, **arguments: str) -> CallAssessment:
        judge = TOOLS[name].judge
        assert judge
        return judge(msgspec.convert(arguments, TOOLS[name].args), desk.context)

    a, b = str(desk.workspace / "a.txt"), str(desk.workspace / "b.txt")
    assert judged("move", path="a.txt", to="b.txt").writes == (a, b)
    copy = judged("copy", path="a.txt", to="b.txt")
    assert (copy.reads, copy.writes) == ((a,), (b,))
    assert (judged("delete", path="a.txt").writes, judged("delete", path="a.txt").risk) == ((a,), "caution")
    assert judged("create_directory", path="b.txt").writes == (b,)
    for name in ("move", "copy"):
        assert judged(name, path="a.txt", to="../x").risk == "dangerous"


async def test_each_shows_beforehand_what_it_would_do(desk: Desk) -> None:
    desk.write("a.txt", "a")
    assert await desk.preview("move", path="a.txt", to="b") == "would move a.txt (1 file, 1 bytes) to b"
    assert await desk.preview("copy", path="a.txt", to="b") == "would copy a.txt (1 file, 1 bytes) to b"
    assert (await desk.preview("delete", path="a.txt")).startswith("would delete a.txt (1 file, 1 bytes)")
    assert await desk.preview("create_directory", path="b") == "would make b/"
    assert [path.name for path in desk.workspace.iterdir()] == ["a.txt"]


PARTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "in",
        "out",
        "loop",
        "up",
        "file",
        "new",
        "ä",
        "a" * 300,
        "\0",
        "\ud800",
        "~",
        ".git",
        "\n",
        "/",
        "…",
    ]
)
NAMES = st.lists(PARTS, min_size=1, max_size=6).map("/".join)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, absolute=st.booleans())
def test_no_name_leads_out(desk: Desk, name: str, absolute: bool) -> None:
    """Links, dots, loops, what does not exist yet: the path stays inside, or is refused in words."""
    root = desk.workspace
    if not (root / "in").exists():
        (root / "in").mkdir()
        (root / "file").write_text("x")
        for link, to in (("out", root.parent / "outside"), ("up", ".."), ("loop", "loop"), ("in/back", "../in")):
            (root / link).symlink_to(to)
    name = f"{root}/{name}" if absolute else name
    for resolve in (resolve_inside, resolve_writable, resolve_entry):
        try:
            path = resolve(root, name)
        except ToolError as error:
            assert error.trouble.message
            continue
        real = (
            Path(os.path.realpath(path.parent)) / path.name
            if resolve is resolve_entry
            else Path(os.path.realpath(path))
        )
        assert real.is_relative_to(root)
        if resolve is resolve_entry:
            assert path != root
