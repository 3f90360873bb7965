"""`sylph undo` with the real program: dirty trees, kills in the middle, other people's work, and every setting."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import time
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path

import msgspec
from tests.engine.undo.trees import tree_of
from tests.flows.program import Model, Sylph, killed
from tests.model_server import call, calls, say
from tests.patience import PATIENCE, eventually, waiting

from sylph.engine.redact.vault import load_home_key
from sylph.engine.undo.content_store import FileContentStore

TASK = ("--mode", "trust", "do it")


def git(folder: Path, *arguments: str) -> str:
    base = ("git", "-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    return subprocess.run([*base, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


async def test_a_dirty_git_tree_is_as_dirty_afterwards_as_before(sylph: Sylph, model: Model) -> None:
    work = sylph.workspace
    git(work, "init", "-q")
    for name in ("kept", "dirty", "staged", "gone"):
        (work / name).write_text(f"{name}\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "first")
    (work / "dirty").write_text("changed by hand\n")
    (work / "staged").write_text("to be committed\n")
    git(work, "add", "staged")
    (work / "gone").unlink()
    (work / "new").write_text("untracked\n")
    status, before = git(work, "status", "--porcelain"), _tree(work)
    shell = "echo x >> dirty; echo x > kept; rm new staged; git checkout -q gone; mkdir -p deep/er; touch deep/er/f"
    await model([calls(("shell", {"command": shell}), ("write", {"path": "dirty", "content": "w\n"})), say("Done.")])
    await sylph.run(*TASK)
    assert git(work, "status", "--porcelain") != status
    undone = await sylph.run("undo", "-y")
    assert undone.code == 0, undone.err
    assert (git(work, "status", "--porcelain"), _tree(work)) == (status, before)
    redone = await sylph.run("undo", "--redo", "--json", "-y")
    assert (redone.code, redone.json["undo"]) == (0, "u2")
    assert not (work / "new").exists()


def _tree(work: Path) -> object:
    return {path: state for path, state in tree_of(work).items() if not path.startswith(".git/") and path != ".git"}


async def test_it_shows_first_and_tells_what_it_left(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.txt").write_text("one\n")
    await model([call("shell", command="echo two >> a.txt; printf '\\0' > b.bin; chmod 600 a.txt"), say("Done.")])
    session = (await sylph.run("--json", *TASK)).events[0]["session"]
    dry = await sylph.run("undo", session, "--dry-run")
    assert dry.code == 0
    for said in ("undo of t1_c1, 2 paths", "M a.txt  +0 -1  (mode 0600 → 0644)", "-two", "D b.bin  (binary, 1 bytes)"):
        assert said in dry.out, dry.out
    assert (await sylph.run("undo", "--dry-run", "--json")).json["files"][0]["removed"] == 1
    (sylph.workspace / "b.bin").write_text("mine")
    left = await sylph.run("undo", "--json", "-y")
    assert (left.code, left.json["restored"]) == (1, ["a.txt"])
    assert left.json["left"] == [{"path": "b.bin", "why": "it was changed since by somebody else"}]
    again = await sylph.run("undo", "-y")
    assert (again.code, "--force" in again.err) == (1, True)
    assert (sylph.workspace / "b.bin").read_text() == "mine"
    forced = await sylph.run("undo", "--force", "--turn", "t1", "--files", "*.bin", "-y")
    assert (forced.code, "1 path restored" in forced.out) == (0, True)
    assert [path.name for path in sylph.workspace.iterdir()] == ["a.txt"]
    nothing = await sylph.run("undo", "--call", "t1_c1")
    assert (nothing.code, "nothing to undo" in nothing.err) == (1, True)


async def test_a_session_shows_what_each_turn_changed(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.txt").write_text("one\ntwo\n")
    await model([call("shell", command="echo three > a.txt; mkdir d"), say("One."), say("Nothing.")])
    await sylph.run(*TASK)
    await sylph.run("-s", "last", "nothing")
    brief, whole = await sylph.run("session", "show", "last"), await sylph.run("session", "show", "last", "--diff")
    for said in ("2 paths changed:", "M a.txt  +1 -2", "A d  (folder)"):
        assert said in brief.out, brief.out
    assert "+three" not in brief.out
    assert "    -one\n    -two\n    +three\n" in whole.out
    (turn,) = (await sylph.run("session", "show", "last", "--json")).json["changes"]
    assert (turn["turn"], [file["path"] for file in turn["files"]]) == ("t1", ["a.txt", "d"])
    await sylph.run("undo", "-y")
    assert "2 paths changed, undone since:" in (await sylph.run("session", "show", "last")).out


async def _killed(sylph: Sylph, mark: str) -> tuple[Process, str]:
    process = await sylph.start("--json", *TASK)
    assert process.stdout
    session = msgspec.json.decode(await process.stdout.readline())["session"]
    await eventually((sylph.workspace / mark).exists, mark)
    await killed(process)
    return process, session


async def test_a_kill_within_the_command_loses_no_change_and_blames_nobody_else(sylph: Sylph, model: Model) -> None:
    for name in ("a", "b", "mine"):
        (sylph.workspace / name).write_text("old\n")
    await model([call("shell", command=f"touch begun; {waiting('go')}; echo new > a; rm b"), say("Done.")])
    process, session = await _killed(sylph, "begun")
    (sylph.workspace / "go").touch()
    (run,) = (sylph.home / "sylph" / "data" / "runs").glob("*.run")
    await eventually(lambda: b'{"ended"' in run.read_bytes(), "the end of the command, which outlives its Sylph")
    await process.communicate()
    # Later, also for the times of files, which are coarse.
    await asyncio.sleep(0.1)
    (sylph.workspace / "mine").write_text("edited meanwhile\n")
    await sylph.run("resume", session)
    undone = await sylph.run("undo", session, "-y")
    assert undone.code == 0, undone.out + undone.err
    found = {path.name: path.read_text() for path in sylph.workspace.iterdir()}
    assert found == {"a": "old\n", "b": "old\n", "mine": "edited meanwhile\n"}


async def test_what_a_dropped_turn_did_can_be_undone(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a").write_text("old\n")
    await model([call("shell", command="echo new > a; touch begun; sleep 300"), say("Done.")])
    process, session = await _killed(sylph, "begun")
    await sylph.run("resume", session, "--drop")
    await process.communicate()
    assert (await sylph.run("undo", session, "-y")).code == 0
    assert [(path.name, path.read_text()) for path in sylph.workspace.iterdir()] == [("a", "old\n")]


async def test_where_nobody_saw_the_end_only_force_undoes(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a").write_text("old\n")
    await model([call("shell", command="echo new > a; touch begun; sleep 300"), say("Done.")])
    process, session = await _killed(sylph, "begun")
    _kill_runner(sylph.home / "sylph" / "data" / "runs")
    await process.communicate()
    await sylph.run("resume", session)
    doubtful = await sylph.run("undo", session, "-y")
    assert (doubtful.code, "others may have changed this since" in doubtful.err + doubtful.out) == (1, True)
    assert (sylph.workspace / "a").read_text() == "new\n"
    assert (await sylph.run("undo", session, "--force", "-y")).code == 0
    assert (sylph.workspace / "a").read_text() == "old\n"


def _kill_runner(runs: Path) -> None:
    """Ends the process that looks after the commands of this home, and nothing else."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.joinpath("cmdline").read_bytes().rstrip(b"\0").endswith(os.fsencode(runs)):
                os.kill(int(process.name), signal.SIGKILL)


async def test_a_kill_within_an_undo_is_finished_by_the_next(sylph: Sylph, model: Model) -> None:
    count = 700
    for number in range(count):
        (sylph.workspace / f"f{number:04}").write_text(f"{number}\n")
    before = tree_of(sylph.workspace)
    await model([call("shell", command="for f in f*; do echo changed > $f; done; touch made"), say("Done.")])
    await sylph.run(*TASK)
    process = await sylph.start("undo", "-y")
    first = sylph.workspace / "f0000"
    # In the middle of it: nothing is waited for between two looks.
    async with asyncio.timeout(PATIENCE):
        while first.read_text() != "0\n":  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0)
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    assert tree_of(sylph.workspace) != before
    assert (await sylph.run("undo", "--dry-run")).code == 1
    assert "An undo was cut off" in (await sylph.run("diagnose", "last")).out
    again = await sylph.run("undo", "-y")
    assert (again.code, "cut off is finished" in again.out) == (0, True)
    assert tree_of(sylph.workspace) == before
    assert (await sylph.run("replay", "last")).code == 0
    assert (await sylph.run("verify")).code == 0


async def test_it_asks_at_a_terminal(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="echo x > n"), say("Done.")])
    await sylph.run(*TASK)
    terminal = await sylph.open("undo")
    await terminal.see("Put these back?")
    terminal.type("n\n")
    await terminal.see("Nothing was undone")
    assert await terminal.end() == 3
    assert (sylph.workspace / "n").exists()
    terminal = await sylph.open("undo")
    await terminal.see("Put these back?")
    terminal.type("y\n")
    await terminal.see("1 path restored")
    assert await terminal.end() == 0
    assert not (sylph.workspace / "n").exists()


async def test_without_a_terminal_it_needs_a_yes_and_takes_the_session_of_this_folder(
    sylph: Sylph, model: Model, tmp_path: Path
) -> None:
    made, inner = sylph.workspace / "n", sylph.workspace / "inner"
    await model([call("shell", command="echo x > n"), say("Done."), call("shell", command="echo y > m"), say("Done.")])
    first = (await sylph.run("--json", *TASK)).events[0]["session"]
    other = Sylph(sylph.home, tmp_path / "other", sylph.environ)
    other.workspace.mkdir()
    await other.run(*TASK)
    refused = await sylph.run("undo")
    assert (refused.code, "no terminal to ask at" in refused.err, "--yes" in refused.err) == (3, True, True)
    assert made.exists()
    inner.mkdir()
    undone = await Sylph(sylph.home, inner, sylph.environ).run("undo", "--json", "-y")
    assert (undone.json["session"], undone.json["restored"], made.exists()) == (first, ["n"], False)
    assert (other.workspace / "m").exists()
    lost = await Sylph(sylph.home, tmp_path, sylph.environ).run("undo", "-y")
    assert (f"No session works in {tmp_path}" in lost.err, f"sylph undo {first}" in lost.err) == (True, True)
    assert lost.code != 0
    assert (other.workspace / "m").exists()


async def test_large_files_are_told_of_after_the_turn_and_come_back_from_the_trash(sylph: Sylph, model: Model) -> None:
    (sylph.home / "sylph").mkdir(exist_ok=True)
    (sylph.home / "sylph" / "config.toml").write_text("probe = false\n[undo]\nmax_file_mb = 1\n")
    theirs, made = sylph.workspace / "theirs", sylph.workspace / "made"
    theirs.write_bytes(os.urandom(1_500_000))
    before = theirs.read_bytes()
    command = "head -c 1500000 /dev/zero > made"
    await model([calls(("delete", {"path": "theirs"}), ("shell", {"command": command})), say("Done.")])
    turn = await sylph.run(*TASK)
    assert "! not covered by undo:\n    ! made: 1,500,000 bytes are too many" in turn.err, turn.err
    assert "theirs:" not in turn.err
    undone = await sylph.run("undo", "-y")
    assert (undone.code, "! made: it is too large to be kept" in undone.out) == (1, True), undone.out
    assert (theirs.read_bytes() == before, made.exists()) == (True, True)
    shown = (await sylph.run("session", "show", "last")).out
    assert shown.count("! made:") == 1
    assert (await sylph.run("undo", "-y", "--force")).code == 0
    assert not made.exists()


async def test_a_slash_command_undoes_and_redoes_in_the_chat(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="echo x > n"), say("All done."), say("I see.")])
    terminal = await sylph.open("--mode", "trust", "chat")
    terminal.type("do it\n")
    await terminal.see("All done.")
    await terminal.see("2 rounds")
    terminal.type("/undo\n")
    await terminal.see("1 path restored")
    assert not (sylph.workspace / "n").exists()
    terminal.type("/undo redo\n")
    await terminal.see("1 path restored", times=2)
    assert (sylph.workspace / "n").exists()
    terminal.type("/quit\n")
    assert await terminal.end() == 0


async def test_every_setting_is_heeded(sylph: Sylph, model: Model) -> None:
    work, config = sylph.workspace, sylph.home / "sylph" / "config.toml"
    (work / "skipped").mkdir()
    for name in ("one", "two"):
        (work / name).write_bytes(b"x" * 1_500_000)
    command = "echo x > skipped/f; echo y > one; echo y > two; echo z > three"

    async def gaps(settings: str) -> tuple[list[str], int]:
        config.write_text(f"probe = false\n[undo]\n{settings}\n")
        for name in ("one", "two"):
            (work / name).write_bytes(b"x" * 1_500_000)
        (work / "three").unlink(missing_ok=True)
        (work / "skipped" / "f").unlink(missing_ok=True)
        await model([call("shell", command=command), say("Done.")])
        events = (await sylph.run("--json", *TASK)).events
        told = [event["data"] for event in events if event["type"] == "files.changed"]
        return [gap.split(":")[0] for data in told for gap in data.get("gaps", [])], len(told)

    assert await gaps("") == ([], 1)
    assert await gaps("enabled = false") == ([], 0)
    assert await gaps('skip = ["skipped"]') == (["skipped/ changed"], 1)
    assert await gaps("max_file_mb = 1") == (["one", "two"], 1)
    assert await gaps("max_files = 2") == (["more than 2 files"], 1)
    (sylph.home / "sylph" / "data" / "undo").rename(sylph.home / "away")
    assert len((await gaps("max_mb = 2"))[0]) == 1


async def test_contents_are_forgotten_when_their_session_has_not_been_used_for_long(sylph: Sylph, model: Model) -> None:
    (sylph.home / "sylph" / "config.toml").write_text("probe = false\n[undo]\nkeep_days = 1\n")
    contents = sylph.home / "sylph" / "data" / "undo" / "contents"
    (sylph.workspace / "a").write_text("the old content\n")
    more = [line for name in "bc" for line in (call("shell", command=f"echo {name} > {name}"), say("Done."))]
    await model([call("shell", command="rm a"), say("Done."), *more])
    first = (await sylph.run("--json", *TASK)).events[0]["session"]
    old = time.time() - 3 * 86_400
    os.utime(contents / "swept", (old, old))
    await sylph.run(*TASK)
    assert _kept(contents, b"the old content")
    # As if the first session had last been used three days ago.
    _age(sylph.home / "sylph" / "data" / "events.db", first)
    os.utime(contents / "swept", (old, old))
    await sylph.run(*TASK)
    assert not _kept(contents, b"the old content")
    assert (await sylph.run("undo", first)).code == 1


def _age(store: Path, session: str) -> None:
    db = sqlite3.connect(store)
    db.execute("update event set ts = ts - 3 * 86400000 where session = ?", (session,))
    db.commit()
    db.close()


def _kept(folder: Path, text: bytes) -> bool:
    contents = FileContentStore(folder, lambda: load_home_key(folder.parents[1] / "vault"))
    return any(text in (contents.get(digest) or b"") for digest in contents.list_digests())


async def test_what_is_kept_is_private(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a").write_text("a\n")
    await model([call("shell", command="rm a"), say("Done.")])
    await sylph.run(*TASK)
    undo = sylph.home / "sylph" / "data" / "undo"
    for path in (undo, *undo.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert not list((undo / "open").glob("*/*"))
