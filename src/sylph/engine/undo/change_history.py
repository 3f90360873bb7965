"""What a session changed and took back, as its facts tell it, and which of it a wish to undo means. Pure."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core.errors import NotFound, UserError
from sylph.core.events import Fact
from sylph.core.facts.file_change import (
    FILE_FACTS,
    FileChange,
    FilesChanged,
    FilesRestored,
    FileState,
    UndoStarted,
    display_path,
)
from sylph.core.facts.tool_call import ToolCalled
from sylph.core.facts.turn import TurnStarted
from sylph.engine.log.store import EventLog

MAX_NAMED = 30
CHANGED_BETWEEN = "somebody changed it between"
DOUBT = "Sylph was stopped while the call ran, and others may have changed this since"
FactRestorer = Callable[[Fact], Fact]


class UndoRequest(Struct, frozen=True, kw_only=True):
    """What is to be undone: everything since a turn or a call; without one, the last turn that changed something."""

    turn: str = ""
    call: str = ""
    files: tuple[str, ...] = ()
    force: bool = False
    redo: bool = False


class RecordedChange(Struct):
    """One change that a call made. `undone` names the undo that took it back."""

    turn: str
    call: str
    change: FileChange
    doubt: str = ""
    undone: str = ""


class RestoreTarget(Struct, frozen=True, kw_only=True):
    """A path to put back: what is to be there, and what must be there now. `left` tells why it goes no further."""

    path: str
    to: FileState | None
    expected: FileState | None
    left: str = ""


class ChangeHistory(Struct):
    changes: list[RecordedChange] = field(default_factory=list[RecordedChange])
    undos: list[UndoStarted] = field(default_factory=list[UndoStarted])
    restored: dict[str, FilesRestored] = field(default_factory=dict[str, FilesRestored])
    gaps: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    redone: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The paths that were redone, by the undo that had put them back."""

    @property
    def unfinished_undo(self) -> UndoStarted | None:
        """An undo that a crash has cut off."""
        return next((undo for undo in self.undos[-1:] if undo.id not in self.restored), None)

    @property
    def redoable(self) -> list[UndoStarted]:
        """The undos of which something is still to be taken back, the newest first."""
        done = [undo for undo in self.undos if not undo.redo and undo.id in self.restored]
        return [undo for undo in reversed(done) if undo.id not in self.redone or self.remaining_steps(undo)]

    def remaining_steps(self, undo: UndoStarted) -> list[FileChange]:
        """The steps of an undo that were done and not redone."""
        paths = set(self.restored[undo.id].restored) - self.redone.get(undo.id, set())
        return [step for step in undo.steps if step.path in paths]

    def add_fact(self, turn: str, fact: Fact) -> None:
        match fact:
            case FilesChanged(call=call, changes=changes, doubt=doubt, gaps=gaps):
                self.changes += [RecordedChange(turn, call, change, doubt) for change in changes]
                self.gaps.setdefault(turn, []).extend(gaps)
            case UndoStarted() as body:
                self.undos.append(body)
            case FilesRestored(undo=id, restored=paths) as body:
                self.restored[id] = body
                undo = next((each for each in self.undos if each.id == id), None)
                if undo:
                    self._mark_undone(undo, set(paths))
            case _:
                pass

    def _mark_undone(self, undo: UndoStarted, paths: set[str]) -> None:
        # What had been put back already, or had never to be, counts as undone too.
        steps = {step.path for step in undo.steps}
        left = {each.path for each in undo.left}
        for made in self.changes:
            path = made.change.path
            if undo.redo:
                if made.undone == undo.redo and path in paths:
                    made.undone = ""
            elif made.call in undo.calls and not made.undone and (path in paths or path not in steps | left):
                made.undone = undo.id
        if undo.redo:
            self.redone.setdefault(undo.redo, set()).update(paths)


def load_history(log: EventLog, session: str, unveiled: FactRestorer = lambda fact: fact) -> ChangeHistory:
    """What the facts tell, with the true names of files."""
    ledger = ChangeHistory()
    found = [row for kind in FILE_FACTS for row in log.find_facts(session, kind)]
    for _, turn, fact in sorted(found, key=lambda row: row[0]):
        ledger.add_fact(turn, unveiled(fact))
    return ledger


def require_existing(log: EventLog, session: str, wish: UndoRequest) -> None:
    """Raises NotFound where a turn or a call is named that there never was."""
    if not (wish.turn or wish.call):
        return
    turns = [turn for _, turn, _ in reversed(log.find_facts(session, TurnStarted))]
    calls = [fact.call for _, _, fact in reversed(log.find_facts(session, ToolCalled))]
    for what, name, there in (("turn", wish.turn, turns), ("call", wish.call, calls)):
        if name and name not in turns and name not in calls:
            more = f" and {len(there) - MAX_NAMED} before them" if len(there) > MAX_NAMED else ""
            said = (
                f"The {what}s there are: {', '.join(there[-MAX_NAMED:])}{more}."
                if there
                else f"There is no {what} yet."
            )
            raise NotFound(f"There is no {what} {name}.", next=[said])


def select_changes(ledger: ChangeHistory, wish: UndoRequest) -> list[RecordedChange]:
    """The changes that are meant, the oldest first. Raises UserError where there are none."""
    standing = [made for made in ledger.changes if not made.undone]
    if wish.turn or wish.call:
        named = (wish.turn, wish.call)
        first = next((at for at, made in enumerate(ledger.changes) if made.turn in named or made.call in named), None)
        if first is None:
            raise _nothing_to_undo(f"{wish.turn or wish.call} changed no files")
        meant = [made for made in ledger.changes[first:] if not made.undone]
    else:
        meant = [made for made in standing if made.turn == standing[-1].turn] if standing else []
    meant = [made for made in meant if matches_globs(made.change.path, wish.files)]
    if not meant:
        raise _nothing_to_undo("It is undone already" if ledger.changes else "This session changed no files")
    return meant


def matches_globs(path: str, globs: Sequence[str]) -> bool:
    name = display_path(path)
    return not globs or any(fnmatchcase(name, glob) or name.startswith(glob.rstrip("/") + "/") for glob in globs)


def plan_targets(meant: Sequence[RecordedChange], *, force: bool) -> list[RestoreTarget]:
    """Where each path goes: as far back as nobody else has had a hand in it; with force, all the way."""
    by_path: dict[str, list[RecordedChange]] = {}
    for made in meant:
        by_path.setdefault(made.change.path, []).append(made)
    return [_plan_target(path, line, force=force) for path, line in by_path.items()]


def _plan_target(path: str, line: Sequence[RecordedChange], *, force: bool) -> RestoreTarget:
    newest = line[-1]
    found = RestoreTarget(path=path, to=newest.change.before, expected=newest.change.after)
    if force:
        return replace(found, to=line[0].change.before)
    if newest.doubt:
        return replace(found, to=newest.change.after, left=newest.doubt)
    for later, made in zip(reversed(line), reversed(line[:-1]), strict=False):
        if made.change.after != later.change.before:
            why = f"{CHANGED_BETWEEN} {made.call} and {later.call}; it is as it was before {later.call}"
            return replace(found, left=why)
        if made.doubt:
            return replace(found, left=made.doubt)
        found = replace(found, to=made.change.before)
    return found


def plan_redo_targets(steps: Sequence[FileChange], files: Sequence[str]) -> list[RestoreTarget]:
    """The way forward again: what an undo put back becomes what it had been."""
    meant = [step for step in steps if matches_globs(step.path, files)]
    return [RestoreTarget(path=step.path, to=step.before, expected=step.after) for step in meant]


def _nothing_to_undo(why: str) -> UserError:
    return UserError(
        f"There is nothing to undo: {why[0].lower()}{why[1:]}.",
        kind="nothing_to_undo",
        next=["`sylph session show` lists what each turn changed."],
    )
