"""Whatever calls and people do to a tree, an undo puts back exactly what the calls did, and touches nothing else."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.undo.trees import Change, Tree, changes, folder, remove, tree_of, write

from sylph.core.tool import CallAssessment
from sylph.engine.commands.runner_client import RunnerClient
from sylph.engine.undo import change_history
from sylph.engine.undo.change_history import ChangeHistory
from sylph.engine.undo.checkpoints import Checkpoints
from sylph.engine.undo.restore import FileRestorer
from sylph.engine.undo.workspace_scan import CheckpointPolicy

COMMAND = CallAssessment("write", "caution", commands=("sh",))


class Story:
    """A workspace in which calls and a person take turns, with a copy of the tree after each."""

    def __init__(self, home: Path) -> None:
        self.root = home / "work"
        self.root.mkdir()
        self.checkpoints = Checkpoints(home / "undo", CheckpointPolicy(), RunnerClient(home / "runs"))
        self.ledger = ChangeHistory()
        self.trees: list[tuple[str, Tree]] = []

    def change(self, some: list[Change]) -> None:
        for each in some:
            each(self.root)

    def person(self, some: list[Change]) -> None:
        self.change(some)
        self.trees.append(("person", tree_of(self.root)))

    async def call(self, some: list[Change]) -> None:
        name = f"c{len(self.trees)}"
        await self.checkpoints.before_call("s", name, str(self.root), COMMAND)
        self.change(some)
        for fact in await self.checkpoints.after_call("s", name, str(self.root), ok=True):
            self.ledger.add_fact("t1", fact)
        self.checkpoints.release_call("s", name)
        self.trees.append(("call", tree_of(self.root)))

    def undo(self) -> dict[str, str]:
        workshop = FileRestorer(
            str(self.root).encode(), self.checkpoints.contents, CheckpointPolicy(), self.checkpoints.session_trash("")
        )
        meant = [made for made in self.ledger.changes if not made.undone]
        steps, left = workshop.plan_steps(change_history.plan_targets(meant, force=False), force=False)
        restored, more = workshop.apply_steps(steps)
        assert set(restored) | {each.path for each in more} == {step.path for step in steps}
        return {each.path: each.why for each in (*left, *more)}

    def expected(self, path: str) -> object:
        """What must be there: what the person made of it last, or what was there in the beginning."""
        state = self.trees[0][1].get(path)
        before = state
        for who, tree in self.trees[1:]:
            now = tree.get(path)
            if who == "person" and now != before:
                state = now
            before = now
        return state

    def states(self, path: str) -> list[object]:
        return [tree.get(path) for _, tree in self.trees]

    def alike(self, path: str) -> bool:
        """Whether the person made of it just what it had been before: nobody can tell that from nothing done."""
        states = self.states(path)
        made = [at for at in range(1, len(states)) if states[at] != states[at - 1]]
        return any(self.trees[at][0] == "person" and states[at] in states[:at] for at in made)


some = st.lists(changes(), min_size=1, max_size=4)


@given(some, st.lists(some, max_size=4))
def test_what_only_calls_changed_comes_back_whole(first: list[Change], calls: list[list[Change]]) -> None:
    async def story(home: Path) -> None:
        told = Story(home)
        told.person(first)
        for each in calls:
            await told.call(each)
        assert told.undo() == {}
        assert tree_of(told.root) == told.trees[0][1]

    with tempfile.TemporaryDirectory() as home:
        asyncio.run(story(Path(home)))


@given(some, st.lists(st.tuples(st.booleans(), some), max_size=6))
def test_nothing_of_the_person_is_touched(first: list[Change], acts: list[tuple[bool, list[Change]]]) -> None:
    async def story(home: Path) -> None:
        told = Story(home)
        told.person(first)
        for by_call, each in acts:
            if by_call:
                await told.call(each)
            else:
                told.person(each)
        before = tree_of(told.root)
        left = told.undo()
        after = tree_of(told.root)
        touched = {made.change.path for made in told.ledger.changes}
        for path in before.keys() | after.keys() | touched:
            if path not in touched:
                assert after.get(path) == before.get(path), path
            elif told.alike(path):
                assert after.get(path) in told.states(path), path
            elif path not in left:
                assert after.get(path) == told.expected(path), path
            else:
                assert after.get(path) in (before.get(path), told.expected(path)), path

    with tempfile.TemporaryDirectory() as home:
        asyncio.run(story(Path(home)))


async def test_what_somebody_put_into_a_new_folder_is_not_lost_with_it(tmp_path: Path) -> None:
    told = Story(tmp_path)
    told.person([])
    await told.call([lambda root: folder(root, "n", "", 0)])
    told.person([lambda root: write(root, "n/mine", "mine", 1)])
    await told.call([lambda root: remove(root, "n/mine", "", 0), lambda root: folder(root, "n/mine", "", 0)])
    left = told.undo()
    assert (told.root / "n" / "mine").read_text() == "mine1"
    assert left == {"n": "there are other things in it"}
