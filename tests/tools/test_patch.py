"""A patch is applied exactly and whole, or nothing changes; also when Sylph is killed in the middle of it."""

import difflib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.errors import ToolError
from sylph.core.tool import CallAssessment, ToolResult
from sylph.tools.files.edit import changeset
from sylph.tools.files.edit.changeset import ChangesetStep, FileContent, load_content
from sylph.tools.files.edit.patch import PatchArgs, prepare_patch

Tree = dict[str, tuple[bytes, bool]]
"""Files by name: their bytes, and whether they can be executed."""
NAMES = ("a.txt", "b.txt", "d/a.txt", "d/e/c.txt", "ä ö.txt", "with space.txt", 'q"uote.txt')

line = st.sampled_from(
    ["one", "two", "three", "", "  four", "- five", "+ six", "@@ -1 +1 @@", "tab\t", "ünï", "--- x", "\\ y"]
)
end = st.sampled_from(["\n", "\n", "\r\n"])
bodies = st.lists(st.tuples(line, end), max_size=14).map(lambda parts: "".join(text + mark for text, mark in parts))
contents = st.tuples(bodies, st.sampled_from(["", "", "no newline"])).map(lambda parts: "".join(parts).encode())
trees = st.dictionaries(st.sampled_from(NAMES), st.tuples(contents, st.booleans()), max_size=5)


def lay(place: Path, tree: Tree) -> None:
    for name, (data, runs) in tree.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if runs else 0o644)


def found(place: Path) -> Tree:
    return {
        path.relative_to(place).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def git(place: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[bytes]:
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CEILING_DIRECTORIES": str(place.parent),
    }
    return subprocess.run(
        ["git", *arguments], cwd=place, input=given.encode(), capture_output=True, check=False, env=os.environ | own
    )


def diff(before: Tree, after: Tree, context: int) -> str:
    """The difference between two trees as git would write it."""
    parts: list[str] = []
    for name in sorted(before | after):
        old, new = before.get(name), after.get(name)
        if old != new:
            parts += [f"diff --git {quoted('a', name)} {quoted('b', name)}\n", *headers(old, new)]
            parts += body(name, old, new, context)
    return "".join(parts)


def headers(old: tuple[bytes, bool] | None, new: tuple[bytes, bool] | None) -> list[str]:
    modes = [f"{100755 if side[1] else 100644}\n" if side else "" for side in (old, new)]
    if not old:
        return [f"new file mode {modes[1]}"]
    if not new:
        return [f"deleted file mode {modes[0]}"]
    return [f"old mode {modes[0]}", f"new mode {modes[1]}"] if old[1] != new[1] else []


def body(name: str, old: tuple[bytes, bool] | None, new: tuple[bytes, bool] | None, context: int) -> Iterator[str]:
    sides = [side[0].decode().split("\n") if side else [""] for side in (old, new)]
    lines = [[f"{line}\n" for line in side[:-1]] + [side[-1]] * (side[-1] != "") for side in sides]
    names = quoted("a", name) if old else "/dev/null", quoted("b", name) if new else "/dev/null"
    for line in difflib.unified_diff(lines[0], lines[1], names[0], names[1], n=context):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def quoted(side: str, name: str) -> str:
    if name.isascii() and '"' not in name:
        return f"{side}/{name}"
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in name.encode()
    )
    return f'"{side}/{escaped}"'


def git_diff(place: Path, before: Tree, after: Tree) -> str:
    """What git itself says, renames among it."""
    sides: list[str] = []
    for tree in (before, after):
        for path in found(place):
            if not path.startswith(".git/"):
                (place / path).unlink()
        lay(place, tree)
        git(place, "add", "--all")
        sides.append(git(place, "write-tree").stdout.decode().strip())
    return git(place, "diff", "--find-renames=30%", *sides).stdout.decode()


def apply(place: Path, patch: str) -> list[str]:
    steps, told = prepare_patch(PatchArgs(patch=patch), place)
    changeset.apply_changes(place, steps, "test")
    return told


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=trees, after=trees, context=st.integers(1, 4))
@example(before={"a.txt": (b"x\n", False)}, after={"a.txt": (b"x\n", True), "b.txt": (b"", False)}, context=3)
@example(before={"a.txt": (b"", False)}, after={"b.txt": (b"", True)}, context=3)
@example(before={"a.txt": (b"a\nb", False)}, after={"a.txt": (b"a\nb\n", False)}, context=1)
def test_the_difference_of_two_trees_turns_the_one_into_the_other(before: Tree, after: Tree, context: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for side, tree in (("old", before), ("new", after)):
            (folder / side).mkdir()
            lay(folder / side, tree)
        patch = diff(before, after, context)
        if patch:
            apply(folder / "old", patch)
        assert found(folder / "old") == found(folder / "new")
        assert not list(folder.rglob(".sylph-*"))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=trees, after=trees, data=st.data())
def test_a_damaged_patch_is_applied_as_it_stands_or_changes_nothing(
    before: Tree, after: Tree, data: st.DataObject
) -> None:
    """Whatever becomes of the patch: git, which is strict too, would have left the same files, or we left all alone."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for side, tree in (("old", before), ("new", after)):
            (folder / side).mkdir()
            lay(folder / side, tree)
        lines = diff(before, after, 2).split("\n")
        for _ in range(data.draw(st.integers(1, 2))):
            at = data.draw(st.integers(0, len(lines) - 1))
            match data.draw(st.sampled_from(["drop", "twice", "cut", "other", "swap"])):
                case "drop":
                    lines[at : at + 1] = []
                case "twice":
                    lines.insert(at, lines[at])
                case "cut":
                    lines = lines[: at + 1]
                case "other":
                    lines[at] = data.draw(
                        st.sampled_from([" one", "-two", "+three", "@@ -1,2 +1,2 @@", "x", "+++ b/z.txt"])
                    )
                case _:
                    lines[at : at + 2] = reversed(lines[at : at + 2])
            lines = lines or [""]
        shutil.copytree(folder / "old", folder / "gits")
        try:
            apply(folder / "old", "\n".join(lines))
        except ToolError:
            assert found(folder / "old") == found(folder / "gits")
        else:
            # What git takes too comes out the same; it refuses more, such as context that is only blank by accident.
            # It gets its last line ended: without that it passes over a last file that is empty and new.
            patch = "\n".join([*lines, ""]) if lines[-1] else "\n".join(lines)
            done = git(folder / "gits", "apply", "--whitespace=nowarn", "-", given=patch)
            # (Git also takes /dev/null for a name where no mode says that the file is made or removed.)
            if done.returncode == 0 and not (folder / "gits" / "dev").exists():
                assert found(folder / "old") == found(folder / "gits")
        assert not list(folder.rglob(".sylph-*"))


def test_what_git_says_is_understood(tmp_path: Path) -> None:
    """The same against git's own words: its quoting, its renames, its idea of an empty file."""
    before: Tree = {"a.txt": (b"1\n2\n3\n4\n5\n6\n7\n8\n", False), "ä ö.txt": (b"x\r\ny", True), "e": (b"", False)}
    after: Tree = {
        "d/b c.txt": (b"1\n2\n3\n4\nfive\n6\n7\n8\n", True),
        "ä ö.txt": (b"x\r\nz", False),
        'q"\t.txt': (b"q", False),
        "new": (b"", True),
    }
    for folder in ("old", "git"):
        (tmp_path / folder).mkdir()
    git(tmp_path / "git", "init", "--quiet")
    patch = git_diff(tmp_path / "git", before, after)
    lay(tmp_path / "old", before)
    assert "renamed a.txt to d/b c.txt" in apply(tmp_path / "old", patch)
    assert found(tmp_path / "old") == dict(sorted(after.items()))


MANY = """\
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/old.txt b/sub/new.txt
rename from old.txt
rename to sub/new.txt
--- a/old.txt
+++ b/sub/new.txt
@@ -1,2 +1,2 @@
 kept
-before
+after
diff --git a/run.sh b/run.sh
new file mode 100755
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+echo
--- a/plain.txt
+++ b/plain.txt
@@ -2,2 +2,3 @@
 two
+between
 three
"""


def many(desk: Desk) -> None:
    desk.write("gone.txt", "gone\n")
    desk.write("old.txt", "kept\nbefore\n").chmod(0o640)
    desk.write("plain.txt", "one\ntwo\nthree\n")


async def test_files_are_made_changed_renamed_and_removed_at_once(desk: Desk) -> None:
    many(desk)
    result = await desk.use("patch", patch=MANY)
    assert "renamed old.txt to sub/new.txt" in result.text
    assert found(desk.workspace) == {
        "plain.txt": (b"one\ntwo\nbetween\nthree\n", False),
        "run.sh": (b"echo\n", True),
        "sub/new.txt": (b"kept\nafter\n", False),
    }
    assert (desk.workspace / "sub/new.txt").stat().st_mode & 0o777 == 0o640


async def test_one_hunk_that_does_not_fit_stops_all_of_it(desk: Desk) -> None:
    many(desk)
    desk.write("plain.txt", "one\ntwo changed\nthree\n")
    before = found(desk.workspace)
    with refused("no_match") as caught:
        await desk.use("patch", patch=MANY)
    assert "Nearest:\n2: two changed" in str(caught.value)
    assert found(desk.workspace) == before


async def test_lines_may_have_moved_but_not_to_two_places(desk: Desk) -> None:
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    path = desk.write("a.txt", "zero\nhalf\none\ntwo\n")
    await desk.use("patch", patch=patch)
    assert path.read_text() == "zero\nhalf\none\n2\n"
    path.write_text("zero\none\ntwo\none\ntwo\n")
    with refused("not_unique"):
        await desk.use("patch", patch=patch)


async def test_a_header_without_numbers_is_found_by_its_lines(desk: Desk) -> None:
    path = desk.write("a.txt", "one\n\nthree\nfour\n")
    await desk.use("patch", patch="--- a/a.txt\n+++ b/a.txt\n@@\n one\n\n-three\n+3\n@@ def f\n-four\n+4\n\n")
    assert path.read_text() == "one\n\n3\n4\n"


async def test_line_ends_marks_and_a_missing_newline_are_kept(desk: Desk) -> None:
    dos = desk.write("dos.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    bare = desk.write("bare.txt", "one\ntwo")
    patch = (
        "--- a/dos.txt\n+++ b/dos.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
        "--- a/bare.txt\n+++ b/bare.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n\\ No newline at end of file\n"
    )
    await desk.use("patch", patch=patch)
    assert dos.read_bytes() == b"\xef\xbb\xbf1\r\ntwo\r\n"
    assert bare.read_bytes() == b"1\ntwo"


async def test_a_missing_newline_that_is_not_told_is_no_match(desk: Desk) -> None:
    desk.write("a.txt", "one\ntwo")
    with refused("no_match") as caught:
        await desk.use("patch", patch="--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n")
    assert "does not end with a newline" in str(caught.value)


async def test_two_files_can_change_places(desk: Desk) -> None:
    desk.write("a", "a\n")
    desk.write("b", "b\n")
    swap = "diff --git a/{0} b/{1}\nrename from {0}\nrename to {1}\n"
    await desk.use("patch", patch=swap.format("a", "b") + swap.format("b", "a"))
    assert found(desk.workspace) == {"a": (b"b\n", False), "b": (b"a\n", False)}


async def test_a_folder_can_take_the_place_of_a_file(desk: Desk) -> None:
    desk.write("a", "a\n")
    patch = "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n--- /dev/null\n+++ b/a/b\n@@ -0,0 +1 @@\n+b\n"
    await desk.use("patch", patch=patch)
    assert found(desk.workspace) == {"a/b": (b"b\n", False)}


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        ("", "bad_patch"),
        ("hello\n", "bad_patch"),
        ("--- a/x\n", "bad_patch"),
        ("--- a/x\n+++ b/x\n", "bad_patch"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n", "bad_patch"),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-x\n+y\n", "bad_patch"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n+z\n", "bad_patch"),
        ("--- a/x\n+++ b/x\n@@ -nonsense\n", "bad_patch"),
        ("--- a/x\n+++ b/x\n@@ -1,0 +2 @@\n+y\n", "no_context"),
        ("--- a/nope\n+++ b/nope\n@@ -1 +1 @@\n-x\n+y\n", "not_found"),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n", "exists"),
        ("--- /dev/null\n+++ b/x/y\n@@ -0,0 +1 @@\n+y\n", "not_a_directory"),
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n--- /dev/null\n+++ b/n/m\n@@ -0,0 +1 @@\n+y\n", "not_a_directory"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n", "bad_patch"),
        ("--- a/../outside/secret.txt\n+++ b/../outside/secret.txt\n@@ -1 +1 @@\n-secret\n+y\n", "outside_workspace"),
        ("--- /dev/null\n+++ b/.git/config\n@@ -0,0 +1 @@\n+y\n", "protected_path"),
        ("--- /dev/null\n+++ b/link/new\n@@ -0,0 +1 @@\n+y\n", "outside_workspace"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 120000\n", "bad_patch"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "bad_patch"),
        ("diff --git a/x b/x\nindex 1..2\n", "bad_patch"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-y\n+x\n", "no_change"),
        ("--- a/bin\n+++ b/bin\n@@ -1 +1 @@\n-x\n+y\n", "binary_file"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n\\ No newline\n--- a/x\n+++ b/x\n@@\n+z\n", "no_context"),
    ],
)
async def test_what_is_wrong_is_told_and_nothing_is_touched(desk: Desk, patch: str, kind: str) -> None:
    desk.write("x", "x\n")
    desk.write("bin", b"x\n\0")
    (desk.workspace / "link").symlink_to(desk.workspace.parent / "outside")
    before = found(desk.workspace.parent)
    if not patch:
        with pytest.raises(msgspec.ValidationError):
            await desk.use("patch", patch=patch)
        return
    with refused(kind):
        await desk.use("patch", patch=patch)
    assert found(desk.workspace.parent) == before


async def test_it_writes_through_a_link_that_stays_inside(desk: Desk) -> None:
    target = desk.write("real.txt", "x\n")
    (desk.workspace / "link.txt").symlink_to("real.txt")
    await desk.use("patch", patch="--- a/link.txt\n+++ b/link.txt\n@@ -1 +1 @@\n-x\n+y\n")
    assert target.read_text() == "y\n"
    assert (desk.workspace / "link.txt").is_symlink()


def test_what_the_system_refuses_half_way_is_taken_back(desk: Desk) -> None:
    """No patch leads here, but a full disk may: here a folder is to be made where a file was made just now."""
    root, changed, gone = desk.workspace, desk.write("a.txt", "a\n"), desk.write("d/gone.txt", "gone\n")
    changed.chmod(0o600)
    before = found(root)
    made = [ChangesetStep(root / name, None, FileContent(b"n\n")) for name in ("n", "n/m")]
    steps = [
        ChangesetStep(gone, load_content(gone), None),
        ChangesetStep(changed, load_content(changed), FileContent(b"b\n", 0o600)),
        *made,
    ]
    with refused("os_error"):
        changeset.apply_changes(root, steps, "test")
    assert found(root) == before
    assert changed.stat().st_mode & 0o777 == 0o600
    assert not list(root.rglob(".sylph-*"))


def test_it_says_beforehand_what_it_would_touch(desk: Desk) -> None:
    judge = TOOLS["patch"].judge
    assert judge
    judged: CallAssessment = judge(PatchArgs(patch=MANY), desk.context)
    names = ("gone.txt", "old.txt", "plain.txt", "run.sh", "sub/new.txt")
    assert judged.writes == tuple(str(desk.workspace / name) for name in names)
    assert (judged.effect, judged.risk) == ("write", "caution")
    assert judge(PatchArgs(patch="nonsense"), desk.context).risk == "dangerous"


async def killed_after(desk: Desk, changes: int | None) -> ToolResult | None:
    """Everything is as if the process had died after so many changes; None: before the drafts were whole."""
    many(desk)
    args, context = PatchArgs(patch=MANY), desk.context
    foresee, recover = TOOLS["patch"].foresee, TOOLS["patch"].recover
    assert foresee
    assert recover
    desk.foreseen = dict(await foresee(args, context))
    steps, _ = prepare_patch(args, desk.workspace)
    if changes is None:
        changeset.stage_drafts(desk.workspace, steps[:2], context.idempotency_key)
    else:
        made = changeset.commit_drafts(
            desk.workspace, changeset.stage_drafts(desk.workspace, steps, context.idempotency_key)
        )
        for _ in range(changes):
            next(made)
    return await recover(args, desk.context)


@pytest.mark.parametrize("changes", [None, 0, 1, 2, 3, 4, 5])
async def test_killed_in_the_middle_it_is_finished_or_not_begun(desk: Desk, changes: int | None) -> None:
    result = await killed_after(desk, changes)
    if result is None:
        assert not changes
        await desk.use("patch", patch=MANY)
    else:
        assert changes
        assert ("has made the rest" in result.text) == (changes < 5)
    assert set(found(desk.workspace)) == {"plain.txt", "run.sh", "sub/new.txt"}
    assert not list(desk.workspace.rglob(".sylph-*"))


async def test_what_somebody_else_changed_meanwhile_is_not_overwritten(desk: Desk) -> None:
    many(desk)
    args, context = PatchArgs(patch=MANY), desk.context
    foresee, recover = TOOLS["patch"].foresee, TOOLS["patch"].recover
    assert foresee
    assert recover
    desk.foreseen = dict(await foresee(args, context))
    steps, _ = prepare_patch(args, desk.workspace)
    next(
        changeset.commit_drafts(desk.workspace, changeset.stage_drafts(desk.workspace, steps, context.idempotency_key))
    )
    desk.write("plain.txt", "mine now\n")
    with refused("unknown") as caught:
        await recover(args, desk.context)
    assert "now plain.txt" in caught.value.trouble.details
    assert (desk.workspace / "plain.txt").read_text() == "mine now\n"
