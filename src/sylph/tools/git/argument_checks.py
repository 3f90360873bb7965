"""Words the model gives, checked so that none of them can be taken by git for an option, a program or a way out."""

import os
import re
from pathlib import Path

from sylph.core.errors import ToolError
from sylph.tools.files.workspace_paths import INSIDE_HINT, resolve_inside

# What no name of a commit has: spaces and control characters, what means a pattern or a refspec, an option's dash.
REF = re.compile(r"[^\s\x00-\x1f\x7f:?*\[\\+-][^\s\x00-\x1f\x7f:?*\[\\]*")
REMOTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
STASH = re.compile(r"(stash@\{)?(\d+)\}?")
URL = re.compile(
    r"(https|ssh|git)://(?:[^\s/@]*@)?\[?(?P<host>[A-Za-z0-9_][A-Za-z0-9_.:-]*?)\]?(:\d+)?/[^\s\x00-\x1f]*"
)
SCP = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*):(?!:|//)[^\s\x00-\x1f]+")


def check_ref(text: str, what: str = "ref") -> str:
    """A commit, a branch, a range of commits."""
    if not text:
        raise ToolError(f"There is no {what}.", kind="bad_argument", next=[f"Give {what}."])
    if not REF.fullmatch(text):
        raise ToolError(
            f"{text!r} is not a {what} that git knows.", kind="bad_ref", next=["Give a plain name or hash."]
        )
    return text


def check_name(text: str) -> str:
    """A branch or tag, as it may be made."""
    if ".." in check_ref(text, "name") or "@{" in text or text.startswith("refs/"):
        raise ToolError(f"{text!r} cannot be a name.", kind="bad_ref", next=["Use letters, digits, - and /."])
    return text


def check_remote(text: str) -> str:
    if not REMOTE.fullmatch(text):
        raise ToolError(
            f"{text!r} is not the name of a remote.", kind="bad_remote", next=["git(action='remote') lists them."]
        )
    return text


def stash_ref(text: str) -> str:
    found = STASH.fullmatch(text or "0")
    if not found:
        raise ToolError(f"{text!r} is not a stash.", kind="bad_ref", next=["git(action='stash', step='list')"])
    return f"stash@{{{found[2]}}}"


def host_of(url: str) -> str:
    """The machine that an address names; empty for a folder on this one."""
    found = URL.fullmatch(url) or SCP.fullmatch(url)
    return found["host"].lower() if found else ""


def check_address(text: str, workspace: Path) -> str:
    """Where a remote may be: a machine by https, ssh or git, or a folder of the workspace."""
    if host_of(text):
        return text
    if not text or "://" in text or "::" in text or text.startswith("-"):
        raise ToolError(
            f"{text!r} is no address for a remote.",
            kind="bad_url",
            next=["Use https://…, ssh://…, git://…, user@host:path, or a folder in the workspace."],
        )
    return str(resolve_inside(workspace, text))


def relative_paths(given: list[str], workspace: Path, place: Path) -> list[str]:
    """Files and folders, as git reads them from `place`. A link is itself here, not what it leads to."""
    return [os.path.relpath(full_path(each, workspace, place), place) for each in given]


def full_path(given: str, workspace: Path, place: Path) -> str:
    root = os.path.realpath(workspace)
    full = os.path.normpath(place / given)
    if not given.strip() or "\0" in given or not Path(full).is_relative_to(root):
        raise ToolError(f"{given!r} is not a path in the workspace.", kind="outside_workspace", next=[INSIDE_HINT])
    return full
