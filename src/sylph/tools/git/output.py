"""What git said, made into something the model can act on."""

import os
import re

from sylph.core.command_run import CommandResult, LostCommand, StopReason
from sylph.core.errors import ErrorReport, OutcomeUnknown, ToolError
from sylph.core.tool import ToolResult
from sylph.tools.git import status
from sylph.tools.git.command_builder import GitCommand, GitRequest
from sylph.tools.git.repository import find_repository
from sylph.tools.git.status import GitStatus

WHO = "Ask the user to say who commits here: git config user.name …, git config user.email … (--global for all)."
LATER = "Look with git(action='status'), then commit the changes or put them aside: git(action='stash')."
# What git says when something is in the way, what that is, and what to do about it.
ERROR_PATTERNS: tuple[tuple[str, str, str], ...] = (
    (r"not a git repository", "not_a_repository", "Make one with the shell tool: git init; or give cwd."),
    (
        r"tell me who you are|empty ident name|auto-detect(ion is disabled| email)",
        "no_identity",
        WHO,
    ),
    (r"dubious ownership", "not_owned", "Another user owns the repository; the user can allow it: safe.directory."),
    (r"index\.lock|\.lock': File exists", "locked", "Another git is at work, or one was killed: look, then try again."),
    (r"stale info", "stale", "The remote has changed: git(action='fetch'), look at it, then decide."),
    (r"\[rejected\]|fetch first|non-fast-forward", "rejected", "The remote is ahead: git(action='pull') first."),
    (r"pre-receive hook declined|\[remote rejected\]", "rejected", "The remote does not take this. Tell the user why."),
    (r"not fully merged", "not_merged", "Merge it first; force=true deletes it all the same."),
    (r"would be overwritten by|commit your changes or stash|have unstaged changes|uncommitted changes", "dirty", LATER),
    (r"Host key verification failed", "unknown_host", "The user has to trust this machine first, with ssh."),
    (
        r"could not read Username|Authentication failed|Permission denied \(publickey|terminal prompts disabled",
        "no_access",
        "Ask the user to log in to the remote: a key in the ssh agent, or a credential helper.",
    ),
    (r"[Cc]ould not resolve host|Connection refused|Network is unreachable|timed out", "network", "Is it reachable?"),
    (
        r"'\S+' does not appear to be a git repository|No such remote",
        "no_remote",
        "git(action='remote') lists what there is; step='create' with name and url makes one.",
    ),
    (r"transport '\S+' not allowed", "bad_url", "Only https, ssh, git and folders can be reached."),
    (r"couldn't find remote ref|src refspec \S+ does not match", "not_found", "git(action='branch', all=true)"),
    (
        r"unknown revision|bad revision|not a valid object|invalid reference|pathspec '.*' did not match|not a commit"
        r"|not something we can merge|branch '.*' not found|is not a stash|invalid upstream",
        "not_found",
        "Look what there is: git(action='log'), git(action='branch', all=true), git(action='status').",
    ),
    (r"already exists", "exists", "Choose another name, or force=true to replace it."),
    (r"contains modified or untracked files", "dirty", "Look into it first; force=true removes it all the same."),
    (r"Read-only file system", "read_only", "Git's folder may not be written here: is it outside of the workspace?"),
)
NOTHING = re.compile(r"nothing to commit|no changes added to commit|nothing added to commit")
ENDED: dict[StopReason, str] = {
    "": "",
    "time": "it took too long",
    "memory": "it used too much memory",
    "cpu": "it used too much processor time",
    "processes": "it had too many processes",
    "stopped": "it was stopped",
}
CREDENTIALS = re.compile(r"(https?://)[^\s/@]+@")


def build_result(ran: CommandResult | LostCommand, plan: GitCommand, scene: GitRequest, mark: str) -> ToolResult:
    if isinstance(ran, LostCommand):
        raise OutcomeUnknown(
            f"How git ended is not known: {ran.evidence}.",
            details={"output so far": _decode_output(ran.head)[-2000:]},
            next=["git(action='status') and git(action='log') show what it has done."],
        )
    if ran.failed:
        why = "git is not installed" if ran.failed == 2 else os.strerror(ran.failed)
        raise ToolError(f"Git could not be started: {why}.", kind="no_git", next=["Ask the user to install git."])
    said, state = _split_output(ran, plan, mark)
    if ran.why:
        return _aborted_result(ran, said)
    if ran.exit == 0:
        return ToolResult(text=_success_text(said, state, plan, scene), exit=0)
    return _failure_result(said, state, ran.exit, plan, scene)


def _split_output(ran: CommandResult, plan: GitCommand, mark: str) -> tuple[str, GitStatus | None]:
    """What the command said, and the state of the work tree."""
    whole = ran.head + (f"\n[… {ran.dropped:,} bytes dropped …]\n".encode() if ran.dropped else b"") + ran.tail
    if plan.argv[0] == "status":
        return ("", status.parse_status(whole)) if ran.exit == 0 else (_decode_output(whole), None)
    said, marked, state = whole.rpartition(f"\n{mark}\n".encode())
    return (
        (_decode_output(said), status.parse_status(state))
        if plan.with_status and marked
        else (_decode_output(whole), None)
    )


def _success_text(said: str, state: GitStatus | None, plan: GitCommand, scene: GitRequest) -> str:
    told = status.render_status(state, _operation_underway(scene)) if state else ""
    text = "\n\n".join(filter(None, [said.strip("\n"), told]))
    if plan.exclude:
        text += f"\n[git ignores {plan.exclude} here: .git/info/exclude]"
    return text or "Done." if plan.effect != "read" else text or "Nothing."


def _failure_result(said: str, state: GitStatus | None, code: int, plan: GitCommand, scene: GitRequest) -> ToolResult:
    underway = _operation_underway(scene)
    text = "\n\n".join(filter(None, [said.strip("\n"), status.render_status(state, underway) if state else ""]))
    if state and state.conflicts:
        trouble = _conflict_report(state, underway, scene)
    elif NOTHING.search(said):
        trouble = ErrorReport("nothing_to_commit", "There is nothing to commit.", {}, (_staging_hint(state),))
    else:
        trouble = _error_report(said, code, plan)
    lines = [text, f"Error ({trouble.kind}): {trouble.message}", *(f"Next: {action}" for action in trouble.next)]
    return ToolResult(text="\n".join(filter(None, lines)), ok=False, exit=code, trouble=trouble)


def _conflict_report(state: GitStatus, underway: str, scene: GitRequest) -> ErrorReport:
    names = ", ".join(each.partition(": ")[2] for each in state.conflicts[:10])
    resolve = "Resolve each file (edit out the <<<<<<< and >>>>>>> marks), git(action='add', paths=[…])"
    if underway in ("merge", "rebase"):
        ways = (
            f"{resolve}, then git(action='{underway}', step='continue').",
            f"Or give up: git(action='{underway}', step='abort').",
        )
    elif scene.args.action == "stash":
        ways = (f"{resolve}. The stash is kept: git(action='stash', step='delete') when all is well.",)
    else:
        ways = (f"{resolve}.",)
    return ErrorReport("conflict", f"It stopped at conflicts in {names}.", {}, ways)


def _staging_hint(state: GitStatus | None) -> str:
    if state and (state.changed or state.untracked):
        return "Stage first: git(action='add', paths=[…]), or all=true for all changes of tracked files."
    return "Change something first."


def _error_report(said: str, code: int, plan: GitCommand) -> ErrorReport:
    for pattern, kind, action in ERROR_PATTERNS:
        if re.search(pattern, said):
            return ErrorReport(kind, _error_line(said, pattern), {}, (action,))
    return ErrorReport("git_failed", f"git {plan.argv[0]} ended with {code}.", {}, ())


def _error_line(said: str, pattern: str) -> str:
    """The line that says it, without git's own prefix."""
    line = next(line for line in said.splitlines() if re.search(pattern, line))
    return re.sub(r"^\s*(fatal|error|hint|!):?\s*", "", line).strip()[:300]


def _aborted_result(ran: CommandResult, said: str) -> ToolResult:
    message = f"Git was ended: {ENDED[ran.why]}."
    trouble = ErrorReport("timed_out" if ran.why == "time" else "stopped", message, {}, ("git(action='status')",))
    return ToolResult(
        text=f"{said}\n[{message}]", ok=False, exit=128 - ran.exit if ran.exit < 0 else ran.exit, trouble=trouble
    )


def _operation_underway(scene: GitRequest) -> str:
    now = find_repository(scene.cwd)
    return now.underway if now else ""


def _decode_output(data: bytes) -> str:
    return CREDENTIALS.sub(r"\1", data.decode("utf-8", "replace"))
