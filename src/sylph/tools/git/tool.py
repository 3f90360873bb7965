"""The tool itself. What carries a request out is loaded with the first one: most conversations need no git."""

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sylph.core.tool import CallAssessment, Tool, ToolContext, ToolResult
from sylph.tools.git.args import GitArgs

if TYPE_CHECKING:
    from sylph.tools.git.remote.settings import GitRemoteStore

LONGEST = 900.0


def build_git_tool(environ: Mapping[str, str], remotes: "GitRemoteStore | None" = None) -> Tool:
    """The tool; git gets `environ` without what looks like a credential, and what is set for a workspace's remote."""

    async def run(args: GitArgs, context: ToolContext) -> ToolResult:
        from sylph.tools.git import run_request
        from sylph.tools.git.git_environment import git_environment

        program = shutil.which("git", path=environ.get("PATH")) or "git"
        return await run_request.run_request(
            run_request.GitSetup(program, git_environment(environ), remotes), args, context
        )

    return Tool(
        name="git",
        description="Git: typed actions, no options. Errors and conflicts name the next step.",
        args=GitArgs,
        run=run,
        effect="external",
        risk="dangerous",
        recourse="by_probe",
        preview=preview_git,
        judge=judge_git,
        recover=recover_git,
        seconds=LONGEST,
    )


async def recover_git(args: GitArgs, context: ToolContext) -> ToolResult | None:
    from sylph.tools.git import run_request

    return await run_request.recover_request(args, context)


async def preview_git(args: GitArgs, context: ToolContext) -> str:
    from sylph.tools.git import run_request

    return await run_request.preview_request(args, context)


def judge_git(args: GitArgs, context: ToolContext) -> CallAssessment:
    from sylph.tools.git import run_request

    return run_request.judge_request(args, context)
