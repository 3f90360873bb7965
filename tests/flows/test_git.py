"""Git through the whole program: real repositories, a remote, a crash in the middle of a commit."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.flows.program import Done, Model, Sylph, killed
from tests.flows.told import results
from tests.model_server import call, say
from tests.patience import eventually

WHO = {f"GIT_{who}_{what}": "tester@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def sh(place: Path, *words: str) -> str:
    env = {**os.environ, **WHO}
    return subprocess.run(["git", *words], cwd=place, env=env, check=True, capture_output=True, text=True).stdout


def diverge(repo: Path) -> None:
    """Two branches that change the same line."""
    sh(repo, "add", "-A")
    sh(repo, "commit", "-q", "-m", "one")
    for branch, text in (("topic", "theirs"), ("main", "ours")):
        sh(repo, "switch", "-q", *(["-c"] if branch == "topic" else []), branch)
        (repo / "a.txt").write_text(f"{text}\n")
        sh(repo, "commit", "-q", "-a", "-m", text)


@pytest.fixture
def repo(sylph: Sylph) -> Path:
    sylph.environ.update(WHO)
    sh(sylph.workspace, "init", "-q", "-b", "main")
    sh(sylph.workspace, "init", "-q", "--bare", "-b", "main", "bare.git")
    (sylph.workspace / ".gitignore").write_text("bare.git\n")
    (sylph.workspace / "a.txt").write_text("one\n")
    return sylph.workspace


async def test_from_the_first_commit_to_the_remote(sylph: Sylph, model: Model, repo: Path) -> None:
    server = await model(
        [
            call("git", action="status"),
            call("git", action="add", all=True),
            call("git", action="commit", message="The first one"),
            call("git", action="remote", step="create", name="origin", url="bare.git"),
            call("git", action="push"),
            call("git", action="log"),
            say("Pushed."),
        ]
    )
    done = await sylph.run("--mode", "trust", "publish it")
    assert (done.code, done.out) == (0, "Pushed.\n"), done.err
    told = results(server)
    assert "no commit yet" in told[0]
    assert "new: a.txt" in told[1]
    assert "tester@x" in told[5]
    assert sh(repo / "bare.git", "log", "--format=%s", "main") == "The first one\n"


async def test_reading_needs_no_question_and_writing_does(sylph: Sylph, model: Model, repo: Path) -> None:
    server = await model(
        [call("git", action="status"), call("git", action="commit", all=True, message="x"), say("I may not.")]
    )
    await sylph.run("look and commit")
    told = results(server)
    assert told[0].startswith("On branch main")
    assert "not permitted" in told[1]


async def test_a_conflict_is_told_with_the_way_on(sylph: Sylph, model: Model, repo: Path) -> None:
    diverge(repo)
    server = await model(
        [call("git", action="rebase", ref="topic"), call("git", action="rebase", step="abort"), say("Given up.")]
    )
    await sylph.run("--mode", "trust", "rebase it")
    told = results(server)
    assert "both modified: a.txt" in told[0]
    assert "git(action='rebase', step='continue')" in told[0]
    assert "the work tree is clean" in told[1]


async def test_a_commit_under_a_killed_sylph_happens_once_and_is_told_truly(
    sylph: Sylph, model: Model, repo: Path
) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho x >> .git/begun\nuntil [ -e .git/go ]; do sleep 0.05; done\n")
    hook.chmod(0o755)
    server = await model(
        [call("git", action="add", all=True), call("git", action="commit", message="once"), say("Committed.")]
    )
    process = await sylph.start("--json", "--mode", "trust", "commit it")
    await eventually((repo / ".git" / "begun").exists, "the hook")
    await killed(process)
    (repo / ".git" / "go").touch()
    out, _ = await process.communicate()
    session = Done(0, out.decode(), "").events[0]["session"]
    resumed = await sylph.run("resume", session)
    assert (resumed.code, "Committed." in resumed.out) == (0, True)
    assert "once" in results(server)[1]
    assert "the work tree is clean" in results(server)[1]
    assert sh(repo, "log", "--format=%s") == "once\n"
    assert (repo / ".git" / "begun").read_text() == "x\n"
