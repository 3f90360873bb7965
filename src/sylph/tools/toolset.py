"""Every workspace tool, built."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sylph.core.permission.path_policy import PathPolicy
from sylph.core.tool import Tool
from sylph.tools.ask import ASK
from sylph.tools.files.edit.edit_file import EDIT, MULTI_EDIT
from sylph.tools.files.edit.patch import PATCH
from sylph.tools.files.move_copy_delete import COPY, CREATE_DIRECTORY, DELETE, MOVE
from sylph.tools.files.read.read_file import READ
from sylph.tools.files.verify_syntax import build_verify_tool
from sylph.tools.files.write import LIST, WRITE
from sylph.tools.git import build_git_tool
from sylph.tools.notify import NOTIFY
from sylph.tools.plan import PLAN
from sylph.tools.search.find_grep import build_find_tool, build_grep_tool
from sylph.tools.search.python_searcher import PythonSearcher
from sylph.tools.search.ripgrep import RipgrepSearcher, find_ripgrep
from sylph.tools.search.tree import EXISTS, build_tree_tool
from sylph.tools.shell.command import build_shell_tool
from sylph.tools.shell.jobs import build_job_tool
from sylph.tools.shell.python_session import build_python_tool

if TYPE_CHECKING:
    from sylph.tools.git.remote.settings import GitRemoteStore


def build_workspace_tools(
    environ: Mapping[str, str], places: PathPolicy, remotes: "GitRemoteStore | None" = None
) -> tuple[Tool, ...]:
    """Every tool for work in a workspace, always in this order; commands run with `environ`, less its secrets."""
    program = find_ripgrep(environ)
    searcher = RipgrepSearcher(program) if program else PythonSearcher()
    files = (READ, WRITE, EDIT, MULTI_EDIT, PATCH, MOVE, COPY, DELETE, CREATE_DIRECTORY)
    search = (
        LIST,
        build_tree_tool(searcher),
        EXISTS,
        build_verify_tool(environ),
        build_find_tool(searcher),
        build_grep_tool(searcher, places),
    )
    commands = (
        build_shell_tool(environ, places),
        build_job_tool(environ, places),
        build_python_tool(environ),
        build_git_tool(environ, remotes),
    )
    return (*files, *search, *commands, PLAN, ASK, NOTIFY)
