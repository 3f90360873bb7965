import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools.desk import Desk, refused

from sylph.core.errors import ToolError
from sylph.tools.files.workspace_paths import display_path, resolve_inside, resolve_writable, translate_os_errors

PIECES = st.sampled_from(["..", ".", "in", "out", "up", "self", "new", "a", "b", "/", "", "file", "ö", "…"])


def test_a_relative_name_and_an_absolute_one_inside_are_the_same(desk: Desk) -> None:
    assert resolve_inside(desk.workspace, "a/b.txt") == resolve_inside(
        desk.workspace, str(desk.workspace / "a" / "b.txt")
    )


@pytest.mark.parametrize(
    "name", ["../outside/secret.txt", "/etc/passwd", "a/../../outside", "..", "link/secret.txt", "link/new/x"]
)
def test_what_leads_out_is_refused_whether_it_exists_or_not(desk: Desk, name: str) -> None:
    (desk.workspace / "link").symlink_to(desk.workspace.parent / "outside")
    with refused("outside_workspace") as caught:
        resolve_inside(desk.workspace, name)
    assert caught.value.trouble.next


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "~", "~/x", "\udc80"])
def test_names_that_cannot_be_meant_are_refused(desk: Desk, name: str) -> None:
    with refused("bad_path"):
        resolve_inside(desk.workspace, name)


def test_a_loop_of_links_does_not_hide_a_link_that_leads_out(desk: Desk) -> None:
    (desk.workspace / "loop").symlink_to("loop")
    (desk.workspace / "out").symlink_to(desk.workspace.parent / "outside")
    with pytest.raises(ToolError):  # of one kind or the other: Python 3.13 reads on behind a loop
        resolve_inside(desk.workspace, "loop/../out/secret.txt")


def test_a_workspace_behind_a_link_is_itself(desk: Desk) -> None:
    door = desk.workspace.parent / "door"
    door.symlink_to(desk.workspace)
    assert display_path(door, resolve_inside(door, "a.txt")) == "a.txt"


@pytest.mark.parametrize("name", [".git/config", "sub/.git/hooks/pre-commit", ".GIT/config", "sly/config"])
def test_git_itself_is_not_written_to(desk: Desk, name: str) -> None:
    (desk.workspace / ".git").mkdir()
    (desk.workspace / "sly").symlink_to(".git")
    with refused("protected_path"):
        resolve_writable(desk.workspace, name)


def test_names_that_only_look_like_git_are_free(desk: Desk) -> None:
    assert resolve_writable(desk.workspace, ".gitignore").name == ".gitignore"


def test_a_shown_name_is_one_line_of_valid_text(desk: Desk) -> None:
    path = desk.workspace / os.fsdecode(b"new\nline\xff")
    assert display_path(desk.workspace, path) == "new\\x0aline�"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, "no_space"),
        (errno.EACCES, "permission_denied"),
        (errno.ELOOP, "symlink_loop"),
        (errno.EIO, "os_error"),
    ],
)
def test_what_the_system_refuses_is_told_to_the_model(number: int, kind: str) -> None:
    with refused(kind), translate_os_errors("a.txt"):
        raise OSError(number, os.strerror(number))


def test_too_long_a_name_is_said_to_be_so(desk: Desk) -> None:
    with refused("name_too_long"), translate_os_errors("x"):
        resolve_inside(desk.workspace, "x" * 300).write_text("")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(pieces=st.lists(PIECES, min_size=1, max_size=8), rooted=st.booleans())
def test_no_path_gets_out_by_any_combination_of_links_and_dots(desk: Desk, pieces: list[str], rooted: bool) -> None:
    _maze(desk.workspace)
    name = ("/" if rooted else "") + "/".join(pieces)
    try:
        path = resolve_inside(desk.workspace, name)
    except ToolError:
        return
    real = os.path.realpath(desk.workspace)
    assert path.is_relative_to(real)
    # Where the system itself would arrive, not only what we computed.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    arrived = Path(f"/proc/self/fd/{descriptor}").readlink() if Path("/proc/self").exists() else path
    os.close(descriptor)
    assert arrived.is_relative_to(real)


def _maze(root: Path) -> None:
    if (root / "in").exists():
        return
    (root / "a" / "b").mkdir(parents=True)
    (root / "file").write_text("")
    (root / "in").symlink_to("a/b")
    (root / "out").symlink_to(root.parent / "outside")
    (root / "a" / "up").symlink_to("../..")
    (root / "up").symlink_to("a/up")
    (root / "self").symlink_to("self")
    (root / "a" / "self").symlink_to("../self/../out")
