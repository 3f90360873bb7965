"""Checking the syntax of files, and looking at what is there."""

import os

import pytest
from tests.tools.desk import TOOLS, Desk, refused

from sylph.tools.files.verify_syntax import VerifyArgs, build_verify_tool

GOOD = {
    "a.py": "x = 1\n",
    "a.json": "[1]",
    "a.toml": "a = 1\n",
    "a.yaml": "a: [1, 2]\n---\nb: &x 1\n",
    "a.xml": "<a><b/></a>",
    "a.ini": "[a]\nb = 1\nc\n",
    "a.md": "```py\nx\n```\n",
    "a.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "a.sh": "if true; then echo; fi\n",
}
BAD = [
    ("a.py", "def f(:\n", "1:7"),
    ("a.py", "x = '\0'\n", ""),
    ("a.json", '{"a": 1,\n}', "2:1"),
    ("a.toml", "a = 1\nb = \n", "2:5"),
    ("a.toml", "a = [1,\n", "2"),
    ("a.yaml", "a: [1\nb: 2\n", "2:2"),
    ("a.yaml", "a:\n\t- b\n", "2:1"),
    ("a.xml", "<a>\n<b></a>", "2:6"),
    ("a.ini", "x = 1\n", "1:1"),
    ("a.ini", "[a]\nx = 1\nx = 2\n", "3"),
    ("a.md", "text\n```py\nx\n", "2:1"),
    ("a.ipynb", "{}", ""),
    ("a.sh", "if true; then\n", "2"),
    ("a.json", b"\xff", "1"),
]


@pytest.mark.parametrize("name", GOOD)
async def test_what_is_well_formed_passes(desk: Desk, name: str) -> None:
    desk.write(name, GOOD[name])
    result = await desk.use("verify_file", path=name)
    assert (result.ok, result.text.startswith(f"{name}: ok (")) == (True, True), result.text


@pytest.mark.parametrize(("name", "content", "place"), BAD)
async def test_what_is_not_is_told_with_its_place(desk: Desk, name: str, content: str | bytes, place: str) -> None:
    desk.write(name, content)
    result = await desk.use("verify_file", path=name)
    assert not result.ok
    assert result.trouble
    assert result.text.startswith(f"{name}:{place}: " if place else f"{name}: "), result.text
    assert result.trouble.details["line"] == (place.partition(":")[0] or "0")


async def test_nothing_is_executed(desk: Desk) -> None:
    desk.write("a.py", "import pathlib\npathlib.Path('made').touch()\n")
    desk.write("a.sh", "touch made\n")
    for name in ("a.py", "a.sh"):
        assert (await desk.use("verify_file", path=name)).ok
    assert not (desk.workspace / "made").exists()


async def test_deep_nesting_is_no_crash(desk: Desk) -> None:
    for name, content in (("a.py", "(" * 50_000), ("a.json", "[" * 200_000), ("a.yaml", "[" * 5_000)):
        desk.write(name, content)
        assert not (await desk.use("verify_file", path=name)).ok


async def test_what_it_cannot_check_it_says(desk: Desk) -> None:
    desk.write("a.zig", "x")
    desk.write("a.sh", "x")
    assert (await desk.use("verify_file", path="a.zig")).text == "a.zig: not checked, no check for .zig"
    bare = build_verify_tool({"PATH": "/nowhere"})
    assert (await desk.use(bare, path="a.sh")).text == "a.sh: not checked, bash is not installed"
    with refused("not_found"):
        await desk.use("verify_file", path="nope.py")


def test_the_program_it_would_run_is_told(desk: Desk) -> None:
    judge = TOOLS["verify_file"].judge
    assert judge
    judged = judge(VerifyArgs(path="a.sh"), desk.context)
    path = str(desk.workspace / "a.sh")
    assert judged.reads == (path,)
    assert judged.commands[0].endswith(f"bash -n {path}")
    assert judged.effect == "read"


async def test_a_tree_shows_what_is_not_ignored_as_deep_as_wanted(desk: Desk) -> None:
    for name in ("src/app.py", "src/deep/er/x.py", "src/deep/y.py", "README.md", "out/z"):
        desk.write(name, "")
    desk.write(".gitignore", "out/\n")
    text = (await desk.use("tree", depth=2)).text
    assert text == "src/\n  deep/  (2 files)\n  app.py\n.gitignore\nREADME.md"
    assert "er/\n" in (await desk.use("tree", depth=5)).text
    assert "z" in (await desk.use("tree", path="out", ignored=True)).text
    assert (await desk.use("tree", path="src/deep")).text == "er/\n  x.py\ny.py"


async def test_a_tree_that_does_not_fit_is_drawn_less_deep(desk: Desk) -> None:
    for number in range(1200):
        desk.write(f"d{number % 5}/f{number}", "")
    text = (await desk.use("tree")).text
    assert text.startswith("d0/  (240 files)\n")
    assert text.endswith("[only 1 level: deeper would not fit]")


async def test_exists_tells_of_each_path_what_it_is(desk: Desk) -> None:
    desk.write("a.txt", "abc").chmod(0o600)
    (desk.workspace / "link").symlink_to("nowhere")
    os.mkfifo(desk.workspace / "pipe")
    text = (await desk.use("exists", paths=["a.txt", "link", "pipe", ".", "nope", "../outside", "a\0b"])).text
    lines = text.splitlines()
    assert lines[0].startswith("a.txt: file, 3 bytes, mode 600, changed 20")
    assert lines[1].startswith("link: link to nowhere, which does not exist")
    assert lines[2].startswith("pipe: device, pipe or socket")
    assert lines[3].startswith(".: folder")
    assert lines[4] == "nope: no"
    assert "outside the workspace" in lines[5]
    assert "NUL" in lines[6]
