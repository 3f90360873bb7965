"""The tool itself. What carries a request out is loaded with the first one: most conversations need no git."""

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sylph.core.tool import Context, Judged, Result, Tool
from sylph.tools.git.args import Git

if TYPE_CHECKING:
    from sylph.tools.git.remotes import Remotes

LONGEST = 900.0


def git(environ: Mapping[str, str], remotes: "Remotes | None" = None) -> Tool:
    """The tool; git gets `environ` without what looks like a credential, and what is set for a workspace's remote."""

    async def run(args: Git, context: Context) -> Result:
        from sylph.tools.git import work

        program = shutil.which("git", path=environ.get("PATH")) or "git"
        return await work.run(work.Means(program, work.environment(environ), remotes), args, context)

    return Tool(
        name="git",
        description="Git: typed actions, no options. Errors and conflicts name the next step.",
        args=Git,
        run=run,
        effect="external",
        risk="dangerous",
        recourse="by_probe",
        preview=preview,
        judge=judge,
        recover=recover,
        seconds=LONGEST,
    )


async def recover(args: Git, context: Context) -> Result | None:
    from sylph.tools.git import work

    return await work.recover(args, context)


async def preview(args: Git, context: Context) -> str:
    from sylph.tools.git import work

    return await work.preview(args, context)


def judge(args: Git, context: Context) -> Judged:
    from sylph.tools.git import work

    return work.judge(args, context)
