"""Whether a remote can be reached with what is set for it: tried, and told in words that can be acted on."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from sylph.core.errors import UserError
from sylph.tools.git.git_environment import FIXED_OPTIONS, NO_HOOKS, git_environment
from sylph.tools.git.git_process import ProgramOutput, run_program
from sylph.tools.git.output import CREDENTIALS
from sylph.tools.git.remote import ssh_keys
from sylph.tools.git.remote.settings import GitRemote, GitRemoteStore
from sylph.tools.git.remote.ssh_agent import open_ssh_environment

SECONDS = 25.0
Outcome = Literal[
    "ok", "host_key_unknown", "host_key_changed", "auth_failed", "not_found", "unreachable", "too_slow", "rejected",
    "no_commit", "failed",
]  # fmt: skip
HEAD = re.compile(r"^[0-9a-f]{40,64}\trefs/heads/(\S+)$", re.MULTILINE)
ADDRESS = re.compile(r"(?:ssh://)?(?:[^@/]+@)?(\[[^\]]+\]|[^:/\s]+)(?::(\d+)(?=/))?[:/]")
SIGNS: tuple[tuple[str, Outcome, str], ...] = (
    (
        r"IDENTIFICATION HAS CHANGED",
        "host_key_changed",
        "somebody may be in between: ask whoever runs the host, then change its line in the known hosts",
    ),
    (r"Host key verification failed|host key is known", "host_key_unknown", "compare, then add it to the known hosts"),
    (
        r"Permission denied|could not read Username|Authentication failed|terminal prompts disabled",
        "auth_failed",
        "let the public half of the key in over there, with the right to write if you want to push",
    ),
    (
        r"does not appear to be a git repository|[Rr]epository .*not found|not exist|returned error: 404",
        "not_found",
        "look at the path in the address",
    ),
    (
        r"[Cc]ould not resolve|Connection refused|unreachable|timed out|Connection closed|No route|Failed to connect",
        "unreachable",
        "is the address right, and the host up?",
    ),
    (r"src refspec HEAD does not match", "no_commit", "make a first commit"),
    (r"\[(remote )?rejected\]|non-fast-forward|fetch first", "rejected", "pull first: the remote is ahead"),
)


class HostKey(Struct, frozen=True, kw_only=True):
    """A key that a host shows. Whether it is the right one only somebody who knows can tell."""

    fingerprint: str
    line: str


class RemoteProbeResult(Struct, frozen=True, kw_only=True):
    ok: bool
    outcome: Outcome
    detail: str
    next: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    """Those that the remote has; at the most the first 100."""
    host_keys: tuple[HostKey, ...] = ()
    """Where the host is not known: what it shows."""


async def probe_remote(
    remotes: GitRemoteStore, remote: GitRemote, environ: Mapping[str, str], *, push: bool, seconds: float = SECONDS
) -> RemoteProbeResult:
    """Asks the remote for its branches, and with `push` also whether it would take a commit. Changes nothing."""
    if not remote.url:
        raise UserError("No address is set.", kind="wrong_state", next=["set `url` first"])
    git = (*FIXED_OPTIONS, *NO_HOOKS)
    try:
        async with open_ssh_environment(remotes, remote, environ) as loan:
            env = {**git_environment(environ), **(loan.env if remote.uses_ssh else {})}
            said = await run_program(
                ("git", *git, "ls-remote", "--heads", "--", remote.url), env, cwd=Path(remote.root), seconds=seconds
            )
            if said.code == 0 and push:
                to = f"HEAD:refs/heads/{remote.branch or 'main'}"
                argv = ("git", *git, "push", "--dry-run", "--porcelain", "--", remote.url, to)
                pushed = await run_program(argv, env, cwd=Path(remote.root), seconds=seconds)
                said = said if pushed.code == 0 else pushed
    except TimeoutError:
        return RemoteProbeResult(
            ok=False, outcome="too_slow", detail=f"No answer in {seconds:.0f} s.", next=("try again later",)
        )
    if said.code:
        return await _failure_result(said, remote, environ)
    heads = tuple(HEAD.findall(said.out)[:100])
    absent = remote.branch and remote.branch not in heads
    detail = f"It answers; it has {len(heads)} branches" + (f", and no {remote.branch} yet." if absent else ".")
    return RemoteProbeResult(ok=True, outcome="ok", detail=detail, branches=heads)


async def _failure_result(said: ProgramOutput, remote: GitRemote, environ: Mapping[str, str]) -> RemoteProbeResult:
    text = CREDENTIALS.sub(r"\1", said.err + said.out)
    for pattern, outcome, action in SIGNS:
        if found := re.search(pattern, text):
            line = next(line for line in text.splitlines() if found[0] in line).strip()[:300]
            keys = await _scan_host_keys(remote, environ) if outcome == "host_key_unknown" else ()
            return RemoteProbeResult(ok=False, outcome=outcome, detail=line, next=(action,), host_keys=keys)
    last = (text.strip().splitlines() or ["git failed"])[-1][:300]
    return RemoteProbeResult(ok=False, outcome="failed", detail=last, next=("look at what git says",))


async def _scan_host_keys(remote: GitRemote, environ: Mapping[str, str]) -> tuple[HostKey, ...]:
    """The keys that an unknown host shows, to be compared by somebody who knows them."""
    where = ADDRESS.match(remote.url)
    if not where:
        return ()
    port = ("-p", where[2]) if where[2] else ()
    argv = ("ssh-keyscan", "-T", "5", *port, where[1].strip("[]"))
    try:
        said = await run_program(argv, {"PATH": environ.get("PATH", ""), "LC_ALL": "C"})
    except TimeoutError:
        return ()
    lines = [line for line in said.out.splitlines() if line and not line.startswith("#")][:10]
    prints = await ssh_keys.fingerprint_keys("\n".join(lines), environ) if lines else []
    return tuple(HostKey(fingerprint=mark, line=line) for mark, line in zip(prints, lines, strict=False))
