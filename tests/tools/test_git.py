"""Git as the model uses it, on real repositories."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.errors import ToolError
from sylph.core.tool import CallAssessment, ToolResult
from sylph.tools.git import build_git_tool as make

HOME = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
WHO = {f"GIT_{who}_{what}": f"{who}@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
GIT = make({"PATH": os.environ["PATH"], **HOME, **WHO})


def sh(place: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], **HOME, **WHO}
    return subprocess.run(["git", *words], cwd=place, env=env, check=True, capture_output=True, text=True).stdout


class Repo:
    """A repository in the workspace, and a bare one that it pushes to."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.bare = desk, desk.workspace / "bare.git"
        sh(desk.workspace, "init", "-q", "-b", "main")
        sh(desk.workspace, "init", "-q", "--bare", "-b", "main", "bare.git")
        desk.write(".gitignore", "bare.git\nother\n")
        self.file("a.txt", "one\n")

    def file(self, name: str, text: str, message: str = "") -> None:
        self.desk.write(name, text)
        sh(self.desk.workspace, "add", "-A")
        sh(self.desk.workspace, "commit", "-q", "-m", message or f"write {name}")

    async def do(self, action: str, **arguments: object) -> ToolResult:
        return await self.desk.use(GIT, action=action, **arguments)

    def judged(self, action: str, **arguments: object) -> CallAssessment:
        assert GIT.judge
        return GIT.judge(GIT.args(action=action, **arguments), self.desk.context)  # pyright: ignore[reportCallIssue]

    def say(self, *words: str) -> str:
        return sh(self.desk.workspace, *words)

    def other(self) -> Path:
        """Somebody else, who has pushed a commit that changes a.txt."""
        place = self.desk.workspace / "other"
        sh(self.desk.workspace, "clone", "-q", str(self.bare), str(place))
        (place / "a.txt").write_text("theirs\n")
        sh(place, "commit", "-q", "-a", "-m", "theirs")
        sh(place, "push", "-q", "origin", "main")
        return place


@pytest.fixture
def repo(desk: Desk) -> Repo:
    return Repo(desk)


def kind(result: ToolResult) -> str:
    return result.trouble.kind if result.trouble else ""


async def test_status_is_readable(repo: Repo) -> None:
    assert (await repo.do("status")).text == "On branch main\nNothing to commit: the work tree is clean."
    repo.desk.write("a.txt", "two\n")
    repo.desk.write("new file.txt", "x")
    repo.say("mv", ".gitignore", "moved")
    assert (await repo.do("status")).text.splitlines() == [
        "On branch main",
        "Staged (1):",
        "  renamed: .gitignore → moved",
        "Not staged (1):",
        "  modified: a.txt",
        "Untracked (2):",
        "  bare.git/",
        "  new file.txt",
    ]


async def test_a_diff_begins_with_its_sums(repo: Repo) -> None:
    repo.desk.write("a.txt", "two\n")
    told = (await repo.do("diff", paths=["a.txt"])).text
    assert told.index("1 file changed") < told.index("+two")
    await repo.do("add", paths=["a.txt"])
    assert (await repo.do("diff")).text == "Nothing."
    assert "+two" in (await repo.do("diff", staged=True)).text


async def test_adding_and_committing_tell_what_is_left(repo: Repo) -> None:
    repo.desk.write("b.txt", "b\n")
    added = await repo.do("add", paths=["b.txt"])
    assert "Staged (1):\n  new: b.txt" in added.text
    done = await repo.do("commit", message="-m is no option\n\n# and this no comment")
    assert "the work tree is clean" in done.text
    assert repo.say("log", "-1", "--format=%B").strip() == "-m is no option\n\n# and this no comment"
    await repo.do("commit", message="better", amend=True)
    assert repo.say("log", "--format=%s").splitlines() == ["better", "write a.txt"]


async def test_nothing_to_commit_says_what_to_stage(repo: Repo) -> None:
    assert (kind(await repo.do("commit", message="x"))) == "nothing_to_commit"
    repo.desk.write("a.txt", "two\n")
    result = await repo.do("commit", message="x")
    assert result.trouble
    assert "git(action='add'" in result.trouble.next[0]
    assert (await repo.do("commit", message="x", all=True)).ok


async def test_history_can_be_looked_at(repo: Repo) -> None:
    repo.file("b.txt", "b\n", "second")
    assert "second" in (await repo.do("log", limit=1)).text
    assert "write a.txt" not in (await repo.do("log", limit=1)).text
    assert "+b" in (await repo.do("show")).text
    assert (await repo.do("show", ref="HEAD~1:a.txt")).text == "one"
    assert "one" in (await repo.do("blame", paths=["a.txt"], lines="1,1")).text
    assert kind(await repo.do("show", ref="nothing")) == "not_found"


async def test_branches_are_made_switched_and_deleted(repo: Repo) -> None:
    assert (await repo.do("switch", step="create", name="topic")).ok
    repo.file("b.txt", "b\n")
    assert "On branch main" in (await repo.do("switch", name="main")).text
    kept = await repo.do("branch", step="delete", name="topic")
    assert (kind(kept), "force=true" in kept.text) == ("not_merged", True)
    assert (await repo.do("branch", step="delete", name="topic", force=True)).ok
    assert "topic" not in (await repo.do("branch")).text
    await repo.do("branch", step="create", name="next", ref="HEAD")
    assert (await repo.do("branch", step="rename", ref="next", name="later")).ok
    assert "later" in repo.say("branch")


async def test_a_switch_that_would_lose_changes_is_refused_and_says_how_to_keep_them(repo: Repo) -> None:
    await repo.do("branch", step="create", name="old")
    repo.file("a.txt", "two\n")
    repo.desk.write("a.txt", "three\n")
    refused = await repo.do("switch", name="old")
    assert (kind(refused), "action='stash'" in refused.text) == ("dirty", True)
    assert (await repo.do("stash", message="-x")).ok
    assert (await repo.do("switch", name="old")).ok
    assert "-x" in (await repo.do("stash", step="list")).text
    assert "+three" in (await repo.do("stash", step="show", ref="0")).text


async def test_a_stash_that_conflicts_is_kept(repo: Repo) -> None:
    repo.desk.write("a.txt", "mine\n")
    await repo.do("stash")
    repo.file("a.txt", "two\n")
    result = await repo.do("stash", step="pop")
    assert (kind(result), result.ok) == ("conflict", False)
    assert "both modified: a.txt" in result.text
    assert "The stash is kept" in result.text
    assert "stash@{0}" in repo.say("stash", "list")
    assert (await repo.do("stash", step="delete")).ok


def diverged(repo: Repo) -> None:
    repo.say("switch", "-q", "-c", "topic")
    repo.file("a.txt", "theirs\n", "theirs")
    repo.say("switch", "-q", "main")
    repo.file("a.txt", "ours\n", "ours")


async def test_a_merge_with_a_conflict_is_resolved_and_continued(repo: Repo) -> None:
    diverged(repo)
    result = await repo.do("merge", ref="topic")
    assert (kind(result), result.exit) == ("conflict", 1)
    assert "A merge is under way." in result.text
    assert "git(action='merge', step='continue')" in result.text
    repo.desk.write("a.txt", "both\n")
    await repo.do("add", paths=["a.txt"])
    assert (await repo.do("merge", step="continue")).ok
    assert len(repo.say("log", "-1", "--format=%P").split()) == 2


async def test_a_merge_can_be_given_up(repo: Repo) -> None:
    diverged(repo)
    await repo.do("merge", ref="topic")
    assert "the work tree is clean" in (await repo.do("merge", step="abort")).text


async def test_a_rebase_stops_continues_and_is_given_up(repo: Repo) -> None:
    diverged(repo)
    stopped = await repo.do("rebase", ref="topic")
    assert "git(action='rebase', step='continue')" in stopped.text
    assert "the work tree is clean" in (await repo.do("rebase", step="abort")).text
    assert repo.say("log", "-1", "--format=%s") == "ours\n"
    await repo.do("rebase", ref="topic")
    repo.desk.write("a.txt", "both\n")
    await repo.do("add", all=True)
    assert (await repo.do("rebase", step="continue")).ok
    assert repo.say("log", "--format=%s").splitlines() == ["ours", "theirs", "write a.txt"]


async def test_tags_are_made_with_and_without_a_message(repo: Repo) -> None:
    await repo.do("tag", step="create", name="v1")
    await repo.do("tag", step="create", name="v2", message="the second")
    assert "the second" in (await repo.do("tag")).text
    assert kind(await repo.do("tag", step="create", name="v1")) == "exists"
    assert (await repo.do("tag", step="delete", name="v1")).ok


async def test_pushing_fetching_and_pulling(repo: Repo) -> None:
    assert kind(await repo.do("push")) == "no_remote"
    assert (await repo.do("remote", step="create", name="origin", url="bare.git")).ok
    assert (await repo.do("push")).ok
    other = repo.other()
    assert (await repo.do("fetch")).ok
    assert (await repo.do("branch", step="track", ref="origin/main")).ok
    assert "1 behind of origin/main" in (await repo.do("status")).text
    repo.file("b.txt", "b\n")
    rejected = await repo.do("push")
    assert (kind(rejected), "action='pull'" in rejected.text) == ("rejected", True)
    assert (await repo.do("pull")).ok
    assert (await repo.do("push")).ok
    assert sh(other, "ls-remote", "origin", "main").split()[0] == repo.say("rev-parse", "HEAD").strip()


async def test_a_pull_with_a_conflict_names_the_way_on(repo: Repo) -> None:
    await repo.do("remote", step="create", name="origin", url="bare.git")
    await repo.do("push")
    repo.other()
    repo.file("a.txt", "ours\n")
    for step, way in (("", "merge"), ("rebase", "rebase")):
        result = await repo.do("pull", step=step)
        assert (kind(result), f"git(action='{way}', step='continue')" in result.text) == ("conflict", True)
        assert (await repo.do(way, step="abort")).ok


async def test_force_is_with_lease(repo: Repo) -> None:
    await repo.do("remote", step="create", name="origin", url="bare.git")
    await repo.do("push")
    repo.other()
    repo.say("commit", "-q", "--amend", "-m", "rewritten")
    assert kind(await repo.do("push", force=True)) == "stale"
    await repo.do("fetch")
    assert (await repo.do("push", force=True)).ok
    assert repo.judged("push", force=True).risk == "dangerous"


async def test_a_worktree_is_made_used_and_removed(repo: Repo) -> None:
    made = await repo.do("worktree", step="create", paths=["trees/one"], name="topic")
    assert made.ok
    assert "the work tree is clean" in (await repo.do("status")).text
    repo.desk.write("trees/one/c.txt", "c\n")
    await repo.do("add", cwd="trees/one", all=True)
    assert "[topic " in (await repo.do("commit", cwd="trees/one", message="there")).text
    assert "trees/one" in (await repo.do("worktree")).text
    repo.desk.write("trees/one/left.txt", "x")
    assert kind(await repo.do("worktree", step="delete", paths=["trees/one"])) == "dirty"
    assert (await repo.do("worktree", step="delete", paths=["trees/one"], force=True)).ok
    assert not (repo.desk.workspace / "trees/one").exists()


async def test_without_a_repository_or_a_name_the_next_step_is_told(desk: Desk) -> None:
    nowhere = await desk.use(GIT, action="status")
    assert (kind(nowhere), "git init" in nowhere.text) == ("not_a_repository", True)
    repo = Repo(desk)
    desk.write("a.txt", "two\n")
    nobody = make({"PATH": os.environ["PATH"], **HOME, "HOME": "/nonexistent", "EMAIL": ""})
    # Else the name of this machine may be enough for git.
    repo.say("config", "user.useConfigOnly", "true")
    result = await desk.use(nobody, action="commit", message="x", all=True)
    assert (kind(result), "user.email" in result.text) == ("no_identity", True)
    assert repo.say("log", "--format=%s").splitlines() == ["write a.txt"]


HOSTILE: list[dict[str, object]] = [
    {"action": "log", "ref": "--output=evil"},
    {"action": "diff", "ref": "--no-index"},
    {"action": "diff", "ref": "-c"},
    {"action": "show", "ref": "--ext-diff"},
    {"action": "merge", "ref": "--strategy=evil"},
    {"action": "rebase", "ref": "--exec=touch evil"},
    {"action": "rebase", "ref": "-xtouch"},
    {"action": "switch", "name": "--orphan"},
    {"action": "branch", "step": "create", "name": "-f"},
    {"action": "branch", "step": "track", "ref": "a b"},
    {"action": "tag", "step": "create", "name": "--sign"},
    {"action": "fetch", "remote": "--upload-pack=touch evil"},
    {"action": "fetch", "remote": "ext::sh -c touch% evil"},
    {"action": "fetch", "remote": "origin", "ref": "--upload-pack=x"},
    {"action": "pull", "remote": "/tmp"},
    {"action": "push", "remote": "../elsewhere"},
    {"action": "push", "remote": "origin", "ref": "+main"},
    {"action": "push", "remote": "origin", "ref": "main:other"},
    {"action": "push", "remote": "origin", "ref": "--receive-pack=x"},
    {"action": "remote", "step": "create", "name": "-x", "url": "bare.git"},
    {"action": "remote", "step": "create", "name": "x", "url": "ext::sh -c 'touch evil'"},
    {"action": "remote", "step": "create", "name": "x", "url": "fd::17"},
    {"action": "remote", "step": "create", "name": "x", "url": "http://example.org/x"},
    {"action": "remote", "step": "create", "name": "x", "url": "file:///etc"},
    {"action": "remote", "step": "create", "name": "x", "url": "/etc"},
    {"action": "remote", "step": "create", "name": "x", "url": "ssh://-oProxyCommand=touch/x"},
    {"action": "remote", "step": "create", "name": "x", "url": "-oProxyCommand=touch:x"},
    {"action": "remote", "step": "set_url", "name": "x", "url": "--push"},
    {"action": "stash", "step": "pop", "ref": "--index"},
    {"action": "worktree", "step": "create", "paths": ["../out"]},
    {"action": "worktree", "step": "create", "paths": [".git/hooks"]},
    {"action": "worktree", "step": "delete", "paths": ["a", "b"]},
    {"action": "add", "paths": ["../x"]},
    {"action": "add", "paths": [""]},
    {"action": "add"},
    {"action": "blame", "paths": []},
    {"action": "commit"},
    {"action": "status", "cwd": ".."},
    {"action": "merge", "step": "delete"},
]


@pytest.mark.parametrize("arguments", HOSTILE, ids=str)
async def test_no_argument_becomes_an_option_a_program_or_a_way_out(repo: Repo, arguments: dict[str, object]) -> None:
    action = str(arguments["action"])
    rest = {key: value for key, value in arguments.items() if key != "action"}
    judged = repo.judged(action, **rest)
    assert judged.effect in ("write", "external")
    with pytest.raises(ToolError):
        await repo.do(action, **rest)
    assert not list(repo.desk.workspace.rglob("evil"))


async def test_paths_are_names_and_no_patterns(repo: Repo) -> None:
    repo.desk.write(":(exclude)x", "x")
    repo.desk.write("--all", "x")
    repo.desk.write("y", "x")
    assert "Staged (2)" in (await repo.do("add", paths=[":(exclude)x", "--all"])).text
    assert kind(await repo.do("add", paths=["*"])) == "not_found"


async def test_what_a_call_does_is_judged_by_its_action(repo: Repo) -> None:
    repo.say("remote", "add", "origin", "git@git.example.org:team/x.git")
    repo.say("remote", "add", "web", "https://user:secret@Example.com:8443/x.git")
    effects = {each: repo.judged(each).effect for each in ("status", "diff", "log", "show", "branch", "tag", "remote")}
    assert set(effects.values()) == {"read"}
    push = repo.judged("push")
    assert (push.effect, push.hosts, push.commands) == (
        "external",
        ("git.example.org",),
        ("git push --porcelain origin main",),
    )
    assert repo.judged("fetch", all=True).hosts == ("git.example.org", "example.com")
    assert repo.judged("commit", message="x").effect == "write"
    risks = [
        repo.judged("switch", name="x", force=True),
        repo.judged("branch", step="delete", name="x", force=True),
        repo.judged("stash", step="delete"),
        repo.judged("push", step="delete", ref="x"),
    ]
    assert {each.risk for each in risks} == {"dangerous"}
    assert repo.judged("show", ref="HEAD:.env").reads == (str(repo.desk.workspace / ".env"),)


async def test_hooks_run_but_not_where_the_config_is_written(repo: Repo) -> None:
    hook = repo.desk.write(".git/hooks/reference-transaction", "#!/bin/sh\necho ran >> ran\n")
    hook.chmod(0o755)
    await repo.do("branch", step="create", name="x")
    assert (repo.desk.workspace / "ran").exists()
    (repo.desk.workspace / "ran").unlink()
    await repo.do("branch", step="delete", name="x")
    assert not (repo.desk.workspace / "ran").exists()


async def test_a_preview_shows_the_command_and_the_message(repo: Repo) -> None:
    assert GIT.preview
    args = GIT.args(action="commit", message="why it was done", all=True)  # pyright: ignore[reportCallIssue]
    shown = await GIT.preview(args, repo.desk.context)
    assert "git commit --all --file=- --" in shown
    assert shown.endswith("why it was done")


async def test_credentials_in_an_address_are_not_shown(repo: Repo) -> None:
    repo.say("remote", "add", "web", "https://user:secret@example.com/x.git")
    assert "secret" not in (await repo.do("remote")).text


ASTRAY = {
    "GIT_DIR": "/nowhere",
    "GIT_ALLOW_PROTOCOL": "ext",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "status.branch",
    "GIT_CONFIG_VALUE_0": "false",
}


async def test_the_environment_of_another_repository_does_not_lead_astray(repo: Repo) -> None:
    tool = make({"PATH": os.environ["PATH"], **HOME, **WHO, **ASTRAY})
    assert (await repo.desk.use(tool, action="status")).ok


async def test_what_people_watch_ends_before_the_state(repo: Repo) -> None:
    repo.desk.write("a.txt", "two\n")
    await repo.do("commit", message="x", all=True)
    assert "1 file changed" in "".join(repo.desk.output)
    assert "sylph:" not in "".join(repo.desk.output)
    assert "branch.oid" not in "".join(repo.desk.output)


async def test_without_git_that_is_said(desk: Desk) -> None:
    with refused("no_git"):
        await desk.use(make({"PATH": "/nowhere"}), action="log")


async def test_it_is_among_the_tools() -> None:
    assert TOOLS["git"].recourse == "by_probe"
