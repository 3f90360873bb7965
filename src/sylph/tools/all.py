"""Every workspace tool, built."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sylph.core.places import Places
from sylph.core.tool import Tool
from sylph.tools.ask import ASK
from sylph.tools.edit import EDIT, MULTI_EDIT
from sylph.tools.files import LIST, WRITE
from sylph.tools.git import git
from sylph.tools.jobs import jobs
from sylph.tools.look import EXISTS, tree
from sylph.tools.notify import NOTIFY
from sylph.tools.patch import PATCH
from sylph.tools.places import COPY, DELETE, MAKE, MOVE
from sylph.tools.plan import PLAN
from sylph.tools.python import python
from sylph.tools.read import READ
from sylph.tools.ripgrep import Ripgrep, located
from sylph.tools.scan import Scan
from sylph.tools.search import find, grep
from sylph.tools.shell import shell
from sylph.tools.verify import verify

if TYPE_CHECKING:
    from sylph.tools.git.remotes import Remotes


def workspace_tools(environ: Mapping[str, str], places: Places, remotes: "Remotes | None" = None) -> tuple[Tool, ...]:
    """Every tool for work in a workspace, always in this order; commands run with `environ`, less its secrets."""
    program = located(environ)
    searcher = Ripgrep(program) if program else Scan()
    files = (READ, WRITE, EDIT, MULTI_EDIT, PATCH, MOVE, COPY, DELETE, MAKE)
    search = (LIST, tree(searcher), EXISTS, verify(environ), find(searcher), grep(searcher, places))
    commands = (shell(environ, places), jobs(environ, places), python(environ), git(environ, remotes))
    return (*files, *search, *commands, PLAN, ASK, NOTIFY)
