import os

import pytest
from tests.tools.desk import PLACES, Desk, refused

from sylph.core.permission.glob_pattern import glob_matcher
from sylph.core.tool import Tool
from sylph.engine.calls.path_guard import find_guards
from sylph.tools.search.find_grep import GATHERED, GrepArgs, build_find_tool, build_grep_tool
from sylph.tools.search.python_searcher import PythonSearcher
from sylph.tools.search.ripgrep import RipgrepSearcher, find_ripgrep
from sylph.tools.search.searcher import FileSearcher

PROGRAM = find_ripgrep(os.environ)
NOTE = "\n" + PythonSearcher.note


@pytest.fixture(params=["ripgrep", "python"])
def searcher(request: pytest.FixtureRequest) -> FileSearcher:
    """Both ways to search give the same answers."""
    if request.param == "python":
        return PythonSearcher()
    assert PROGRAM, "ripgrep comes with the locked requirements"
    return RipgrepSearcher(PROGRAM)


async def told(desk: Desk, tool: Tool, **arguments: object) -> str:
    return (await desk.use(tool, **arguments)).text.removesuffix(NOTE)


@pytest.fixture
def tree(desk: Desk) -> Desk:
    desk.write("src/app.py", "import os\n\ndef run():\n    return os.name\n")
    desk.write("src/deep/app_test.py", "def test_run():\n    assert Run\n")
    desk.write("notes.md", "to run:\nrun run\n")
    desk.write(".github/ci.yml", "run: check\n")
    desk.write(".git/config", "run\n")
    desk.write("data.bin", b"run\0run")
    return desk


async def test_grep_shows_lines_under_the_name_of_their_file(tree: Desk, searcher: FileSearcher) -> None:
    assert await told(tree, build_grep_tool(searcher, PLACES), pattern=r"\brun\b") == (
        ".github/ci.yml\n1:run: check\n\nnotes.md\n1:to run:\n2:run run\n\nsrc/app.py\n3:def run():"
    )


async def test_grep_shows_what_is_around_and_marks_the_gaps(tree: Desk, searcher: FileSearcher) -> None:
    tree.write("long.txt", "".join(f"{number}\n" for number in range(1, 31)))
    found = await told(tree, build_grep_tool(searcher, PLACES), pattern="^(5|6|20)$", path="long.txt", context=1)
    assert found == "long.txt\n4-4\n5:5\n6:6\n7-7\n--\n19-19\n20:20\n21-21"


async def test_grep_can_name_files_or_count_lines(tree: Desk, searcher: FileSearcher) -> None:
    assert await told(tree, build_grep_tool(searcher, PLACES), pattern="run", mode="files", path="src") == (
        "src/app.py\nsrc/deep/app_test.py"
    )
    assert (
        await told(tree, build_grep_tool(searcher, PLACES), pattern="run", mode="count", glob="*.md") == "notes.md: 2"
    )


@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", ["src/app.py", "src/deep/app_test.py"]),
        ("*.{md,yml}", [".github/ci.yml", "notes.md"]),
        ("src/**/*_test.py", ["src/deep/app_test.py"]),
        ("!*.py", [".github/ci.yml", "notes.md"]),
    ],
)
async def test_grep_looks_only_at_files_of_the_glob(
    tree: Desk, searcher: FileSearcher, glob: str, files: list[str]
) -> None:
    found = await told(
        tree, build_grep_tool(searcher, PLACES), pattern="run", ignore_case=True, glob=glob, mode="files"
    )
    assert found.splitlines() == files


async def test_grep_minds_the_case_unless_told_not_to(tree: Desk, searcher: FileSearcher) -> None:
    assert await told(tree, build_grep_tool(searcher, PLACES), pattern="RUN") == "[no matches]"
    assert "2:    assert Run" in await told(tree, build_grep_tool(searcher, PLACES), pattern="RUN", ignore_case=True)


async def test_more_matches_than_wanted_are_counted_not_shown(tree: Desk, searcher: FileSearcher) -> None:
    tree.write("many.txt", "hit\n" * 50)
    found = await told(tree, build_grep_tool(searcher, PLACES), pattern="hit", limit=3)
    assert found == "many.txt\n1:hit\n2:hit\n3:hit\n[3 of 50 matches; narrow the search or raise limit]"
    tree.write("many.txt", "hit\n" * (GATHERED + 10))
    found = await told(tree, build_grep_tool(searcher, PLACES), pattern="hit", limit=1)
    assert "[1 of more than" in found


async def test_a_pattern_that_cannot_be_read_is_explained(tree: Desk, searcher: FileSearcher) -> None:
    for mode in ("content", "count"):
        with refused("bad_pattern") as caught:
            await tree.use(build_grep_tool(searcher, PLACES), pattern="a(", mode=mode)
        assert "'a('" in str(caught.value)


async def test_a_pattern_or_a_name_that_begins_with_a_dash_is_no_option(tree: Desk, searcher: FileSearcher) -> None:
    tree.write("-v", "--files\n")
    assert await told(tree, build_grep_tool(searcher, PLACES), pattern="--files", path="-v") == "-v\n1:--files"


async def test_very_long_lines_are_cut_and_odd_bytes_marked(tree: Desk, searcher: FileSearcher) -> None:
    tree.write("long.txt", b"needle" + b"x" * 100_000 + b"\nneedle \xff\r\n")
    found = await told(tree, build_grep_tool(searcher, PLACES), pattern="needle")
    assert len(found) < 500
    assert found.splitlines()[-1] == "2:needle �"


async def test_a_search_stays_in_the_workspace(tree: Desk, searcher: FileSearcher) -> None:
    (tree.workspace / "out").symlink_to(tree.workspace.parent / "outside")
    (tree.workspace / "file_out").symlink_to(tree.workspace.parent / "outside" / "secret.txt")
    assert await told(tree, build_grep_tool(searcher, PLACES), pattern="secret") == "[no matches]"
    assert await told(tree, build_find_tool(searcher), pattern="*secret*") == "[no files]"
    with refused("outside_workspace"):
        await tree.use(build_grep_tool(searcher, PLACES), pattern="secret", path="out")
    with refused("not_found"):
        await tree.use(build_grep_tool(searcher, PLACES), pattern="x", path="none")


async def test_find_knows_names_and_paths(tree: Desk, searcher: FileSearcher) -> None:
    assert await told(tree, build_find_tool(searcher), pattern="*.py") == "src/app.py\nsrc/deep/app_test.py"
    assert await told(tree, build_find_tool(searcher), pattern="deep/*", path="src") == "src/deep/app_test.py"
    assert await told(tree, build_find_tool(searcher), pattern="ci.yml") == ".github/ci.yml"
    assert await told(tree, build_find_tool(searcher), pattern="config") == "[no files]"
    with refused("not_a_directory"):
        await tree.use(build_find_tool(searcher), pattern="*", path="notes.md")


async def test_find_can_put_the_newest_first_and_stops_at_the_limit(tree: Desk, searcher: FileSearcher) -> None:
    for age, name in enumerate(("new", "older", "oldest")):
        os.utime(tree.write(f"{name}.log", ""), (1e9 - age, 1e9 - age))
    found = await told(tree, build_find_tool(searcher), pattern="*.log", newest=True, limit=2)
    assert found == "new.log\nolder.log\n[2 of 3 files; narrow the search or raise limit]"


async def test_what_ignore_files_leave_out_is_left_out_until_asked_for(tree: Desk) -> None:
    assert PROGRAM
    tree.write(".gitignore", "*.log\nbuild/\n")
    tree.write("a.log", "run\n")
    tree.write("build/b.py", "run\n")
    searcher = RipgrepSearcher(PROGRAM)
    for pattern in ("a.log", "b.py", "*.log"):
        assert await told(tree, build_find_tool(searcher), pattern=pattern) == "[no files]"
        assert await told(tree, build_grep_tool(searcher, PLACES), pattern="run", glob=pattern) == "[no matches]"
        assert await told(tree, build_find_tool(searcher), pattern=pattern, ignored=True) != "[no files]"
    assert (
        await told(tree, build_grep_tool(searcher, PLACES), pattern="run", glob="b.py", ignored=True)
        == "build/b.py\n1:run"
    )


async def test_the_search_in_python_says_what_it_does_not_do(tree: Desk) -> None:
    tree.write("node_modules/x.py", "run\n")
    found = (await tree.use(build_find_tool(PythonSearcher()), pattern="x.py")).text
    assert found == "[no files]" + NOTE


async def test_every_name_on_the_disk_can_be_found(tree: Desk, searcher: FileSearcher) -> None:
    (tree.workspace / os.fsdecode(b"odd\xff")).write_text("run\n")
    tree.write("ümläut ß.txt", "run\n")
    assert await told(tree, build_find_tool(searcher), pattern="odd*") == "odd�"
    assert await told(tree, build_grep_tool(searcher, PLACES), pattern="run", glob="ü*") == "ümläut ß.txt\n1:run"


def test_ripgrep_is_looked_for_beside_python_then_on_the_path() -> None:
    assert PROGRAM
    assert find_ripgrep({"PATH": "/nowhere"}) in (PROGRAM, None)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "b/c/a.py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "x/src/a.py"]),
        ("**/b/*", ["b/x", "a/b/x"], ["ab/x", "b/x/y"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "srcs/a"]),
        ("/a/b", ["a/b"], ["x/a/b"]),
        ("[!a-c]?", ["dx", "z1"], ["ax", "d"]),
        ("[]x]", ["]", "x"], ["y"]),
        ("{a,b.{c,d}},e", ["a,e", "b.c,e"], ["b,e", "a"]),
        (r"\*", ["*"], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
        ("[", ["["], ["a"]),
    ],
)
def test_globs_mean_what_ignore_files_mean(glob: str, yes: list[str], no: list[str]) -> None:
    matches = glob_matcher(glob)
    assert [path for path in yes if not matches(path)] == []
    assert [path for path in no if matches(path)] == []


@pytest.mark.parametrize("glob", ["{a", "a}"])
def test_a_glob_that_is_none_is_refused(glob: str) -> None:
    with refused("bad_pattern"):
        glob_matcher(glob)


async def test_grep_can_span_lines(tree: Desk, searcher: FileSearcher) -> None:
    found = await told(tree, build_grep_tool(searcher, PLACES), pattern=r"def run.*\n\s+return", multiline=True)
    assert found == "src/app.py\n3:def run():\n4:    return os.name"


async def test_grep_can_look_at_one_language(tree: Desk, searcher: FileSearcher) -> None:
    assert (
        await told(tree, build_grep_tool(searcher, PLACES), pattern="run", type="py", mode="files")
        == "src/app.py\nsrc/deep/app_test.py"
    )
    narrowed = await told(
        tree, build_grep_tool(searcher, PLACES), pattern="run", type="py", glob="*_test.py", mode="files"
    )
    assert narrowed == "src/deep/app_test.py"
    with refused("bad_pattern"):
        await told(tree, build_grep_tool(searcher, PLACES), pattern="run", type="klingon")


async def test_find_can_look_for_folders_sizes_and_ages(tree: Desk, searcher: FileSearcher) -> None:
    assert await told(tree, build_find_tool(searcher), pattern="*", folders=True) == ".github/\nsrc/\nsrc/deep/"
    tree.write("big.dat", "x" * 5000)
    assert await told(tree, build_find_tool(searcher), pattern="*", larger=1000) == "big.dat  5,000 bytes"
    old = tree.workspace / "notes.md"
    os.utime(old, (0, 0))
    recent = await told(tree, build_find_tool(searcher), pattern="*.md", hours=1)
    assert recent == "[no files]"


async def test_a_folder_is_searched_without_its_secrets_and_that_is_said(tree: Desk, searcher: FileSearcher) -> None:
    tree.write(".env", "KEY=PRIVATE\n")
    tree.write(".env.example", "KEY=PRIVATE\n")
    tree.write("sub/.ssh/config", "# PRIVATE\n")
    tree.write("sub/.ssh/id_rsa", "PRIVATE KEY\n")
    tree.write("sub/.ssh/id_rsa.pub", "not PRIVATE\n")
    tree.write("sub/real.key", "PRIVATE\n")
    tree.write("sub/.docker/config.json", "PRIVATE\n")
    note = (
        "[5 files that may hold secrets were not searched: .env, sub/.docker/config.json, sub/.ssh/config, "
        "sub/.ssh/id_rsa, sub/real.key; name one as path to search it]"
    )
    found = await told(tree, build_grep_tool(searcher, PLACES), pattern="PRIVATE")
    assert found == f".env.example\n1:KEY=PRIVATE\n\nsub/.ssh/id_rsa.pub\n1:not PRIVATE\n{note}"
    counted = await told(tree, build_grep_tool(searcher, PLACES), pattern="PRIVATE", mode="count")
    assert counted == f".env.example: 1\nsub/.ssh/id_rsa.pub: 1\n{note}"
    # The same is said whether they hold it or not.
    assert (
        await told(tree, build_grep_tool(searcher, PLACES), pattern="nowhere", mode="files") == f"[no matches]\n{note}"
    )
    one = await told(tree, build_grep_tool(searcher, PLACES), pattern="PRIVATE", path="sub", glob="*.key")
    assert one.endswith("[1 file that may hold secrets was not searched: sub/real.key; name one as path to search it]")
    assert await told(tree, build_grep_tool(searcher, PLACES), pattern="PRIVATE", glob="*.py") == "[no matches]"
    assert await told(tree, build_find_tool(searcher), pattern="*.key") == "sub/real.key"


async def test_a_secret_that_was_named_is_searched(tree: Desk, searcher: FileSearcher) -> None:
    tree.write("sub/.ssh/id_rsa", "PRIVATE KEY\n")
    for path in ("sub/.ssh/id_rsa", "sub/.ssh"):
        tool = build_grep_tool(searcher, PLACES)
        assert tool.judge
        judged = tool.judge(GrepArgs(pattern="PRIVATE", path=path), tree.context)
        assert [guard.decision for guard in find_guards(judged, PLACES, command=False)] == ["ask"]
        assert await told(tree, tool, pattern="PRIVATE", path=path) == "sub/.ssh/id_rsa\n1:PRIVATE KEY"
