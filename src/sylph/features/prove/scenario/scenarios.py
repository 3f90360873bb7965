"""What is played while the process gets killed: what a person says, what the model wants, what the end must be."""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from sylph.core.facts.budget import Budget, BudgetCaps
from sylph.core.facts.turn import InputDelivery
from sylph.core.permission.types import Mode
from sylph.core.provider import ModelReply
from sylph.testing import call_tools, say

MARKED = re.compile(r"echo (\w+) >> journal")
NOTED = re.compile(MARKED.pattern + r"; .*exit (\d+)$")
NEVER = "never"
SECRET = "hunter2-the-secret"
# What the log holds only as a placeholder, and a killed turn goes on with all the same.
KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"
TASK = "Do what the script says."


class SideMessage(Struct, frozen=True, kw_only=True):
    """Said while a command runs."""

    key: str
    delivery: InputDelivery


class SayStep(Struct, frozen=True, kw_only=True):
    """A message that begins a turn; the key makes saying it twice one message.

    When a call of it runs, the person can stop it, or make it pause and then go on.
    """

    key: str
    text: str = TASK
    asides: tuple[SideMessage, ...] = ()
    then: Literal["", "stop", "pause"] = ""


class CompactStep(Struct, frozen=True):
    """The person asks for a compaction."""


class ForkStep(Struct, frozen=True):
    """The person forks the session, and speaks in the fork from then on."""


class UndoStep(Struct, frozen=True):
    """The person undoes what was changed since a turn began."""

    turn: str


class RetryStep(Struct, frozen=True):
    """The person has the last turn run again, in other words."""

    text: str


class EraseStep(Struct, frozen=True):
    """The person takes a secret out of the session."""


ScenarioStep = SayStep | CompactStep | ForkStep | UndoStep | RetryStep | EraseStep


class ProofScenario(Struct, frozen=True, kw_only=True):
    """`lines` is all the model ever says, in order; `files` is what the workspace holds when all is done."""

    name: str
    lines: tuple[ModelReply, ...]
    steps: tuple[ScenarioStep, ...] = (SayStep(key="k1"),)
    mode: Mode = "trust"
    window: int | None = None
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    on: tuple[str, ...] = ()
    budget: Budget | None = None
    cut: bool = False
    """Whether a turn is stopped: then not everything has to happen, and nothing may happen twice all the same."""

    @property
    def turns(self) -> int:
        """How many messages reach a turn."""
        return len(self.keys) + sum(isinstance(step, RetryStep) for step in self.steps)

    @property
    def keys(self) -> list[str]:
        spoken = [step for step in self.steps if isinstance(step, SayStep)]
        return [key for step in spoken for key in (step.key, *(aside.key for aside in step.asides))]


WantedCall = tuple[str, dict[str, object]]


def note_command(word: str, code: int = 0, *, seconds: float = 0.0) -> WantedCall:
    """A command that leaves its mark once each time it runs, and ends with a code of its own."""
    pause = f"sleep {seconds}; " if seconds else ""
    return "shell", {"command": f"echo {word} >> journal; {pause}echo said {word}; exit {code}"}


def write_call(path: str, content: str) -> WantedCall:
    return "write", {"path": path, "content": content}


def edit_call(path: str, old: str, new: str) -> WantedCall:
    return "edit", {"path": path, "old": old, "new": new}


def read_call(path: str) -> WantedCall:
    return "read", {"path": path}


FILES = ProofScenario(
    name="files",
    lines=(
        call_tools(write_call("a.txt", "one\ntwo\n"), write_call("deep/down/b.txt", "first\n")),
        call_tools(edit_call("a.txt", "two", "three"), write_call("deep/down/b.txt", "second\n")),
        say("Written."),
        call_tools(edit_call("a.txt", "one", KEY)),
        say("Done."),
    ),
    steps=(SayStep(key="k1"), SayStep(key="k2")),
    files={"a.txt": f"{KEY}\nthree\n", "deep/down/b.txt": "second\n"},
)
PATCH = """\
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+three
diff --git a/old.txt b/new/name.txt
rename from old.txt
rename to new/name.txt
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
--- /dev/null
+++ b/new/made.txt
@@ -0,0 +1 @@
+made
"""
PLACES = ProofScenario(
    name="places",
    lines=(
        call_tools(write_call("a.txt", "one\ntwo\n"), write_call("old.txt", "old\n"), write_call("gone.txt", "gone\n")),
        call_tools(
            ("patch", {"patch": PATCH}), ("multi_edit", {"path": "a.txt", "edits": [{"old": "one", "new": "1"}]})
        ),
        call_tools(("copy", {"path": "new", "to": "copied"}), ("move", {"path": "new", "to": "moved/here"})),
        call_tools(("delete", {"path": "copied"}), ("create_directory", {"path": "empty"})),
        call_tools(("move", {"path": "trash:t1_c8", "to": "back"})),
        say("Done."),
    ),
    files={
        "a.txt": "1\nthree\n",
        "moved/here/name.txt": "old\n",
        "moved/here/made.txt": "made\n",
        "back/name.txt": "old\n",
        "back/made.txt": "made\n",
    },
)
SHELL = ProofScenario(
    name="shell",
    lines=(
        call_tools(note_command("alpha", 3)),
        call_tools(note_command("beta"), note_command("gamma", 7, seconds=0.05)),
        call_tools(("shell", {"command": f"echo much >> journal; seq 20000; : {KEY}; echo said much; exit 0"})),
        say("Run."),
    ),
)
READS = ProofScenario(
    name="reads",
    lines=(
        call_tools(write_call("a.txt", "a\n"), note_command("first", 1)),
        call_tools(read_call("a.txt"), read_call("a.txt"), ("list", {}), ("grep", {"pattern": "first"})),
        call_tools(("plan", {"steps": [{"text": "look", "status": "done"}]})),
        say("Seen."),
    ),
    files={"a.txt": "a\n"},
)
APPROVALS = ProofScenario(
    name="approvals",
    mode="ask",
    lines=(
        # One after the other: asked for together, they would be one question.
        call_tools(note_command("may", 4)),
        call_tools(note_command(NEVER, 5)),
        call_tools(("ask_user", {"questions": [{"question": "Which colour?"}]}), write_call("asked.txt", "yes\n")),
        say("Asked."),
    ),
    files={"asked.txt": "yes\n"},
)
OUTSIDE = ProofScenario(
    name="outside",
    lines=(
        call_tools(("charge", {"what": "card"}), ("book", {"what": "room"})),
        call_tools(("book", {"what": "table"}), ("charge", {"what": "fee"})),
        say("Paid."),
    ),
)
COMPACTION = ProofScenario(
    name="compaction",
    window=1600,
    lines=(
        call_tools(note_command("long", 2)),
        say("A long story. " * 120),
        call_tools(write_call("c.txt", "kept\n")),
        say("Another long story. " * 120),
        call_tools(note_command("late", 6)),
        say("Done."),
    ),
    steps=(SayStep(key="k1"), SayStep(key="k2"), SayStep(key="k3"), CompactStep()),
    files={"c.txt": "kept\n"},
)
JOBS = ProofScenario(
    name="jobs",
    lines=(
        call_tools(("job", {"action": "start", "command": note_command("built", 3, seconds=0.05)[1]["command"]})),
        call_tools(("job", {"action": "wait", "id": "t1_c1", "seconds": 10})),
        say("Built."),
    ),
)
STEERING = ProofScenario(
    name="steering",
    lines=(call_tools(note_command("slow", 9, seconds=0.1)), call_tools(note_command("next", 1)), say("Steered.")),
    steps=(
        SayStep(key="k1", asides=(SideMessage(key="k2", delivery="steer"), SideMessage(key="k3", delivery="follow"))),
    ),
)
FORK = ProofScenario(
    name="fork",
    lines=(
        call_tools(write_call("f.txt", "old\n")),
        say("Before."),
        call_tools(note_command("forked", 8), write_call("f.txt", "new\n")),
        say("After."),
    ),
    steps=(SayStep(key="k1"), ForkStep(), SayStep(key="k2")),
    files={"f.txt": "new\n"},
)

UNDO = ProofScenario(
    name="undo",
    lines=(
        call_tools(write_call("a.txt", "one\n"), write_call("b.txt", "two\n")),
        call_tools(edit_call("a.txt", "one", "1"), write_call("deep/down/c.txt", "three\n")),
        call_tools(
            ("shell", {"command": "rm b.txt; echo more >> a.txt; ln -s a.txt l; mkdir -p deep/er; chmod 600 a.txt"})
        ),
        say("Done."),
    ),
    steps=(SayStep(key="k1"), UndoStep("t1")),
)
CANCEL = ProofScenario(
    name="cancel",
    cut=True,
    lines=(
        call_tools(note_command("stopped", 2, seconds=0.2)),
        call_tools(write_call("kept.txt", "kept\n"), note_command("later", 3)),
        say("Done."),
    ),
    steps=(SayStep(key="k1", then="stop"), SayStep(key="k2", then="stop"), SayStep(key="k3")),
    files={"kept.txt": "kept\n"},
)
PAUSE = ProofScenario(
    name="pause",
    lines=(
        call_tools(note_command("before", 2, seconds=0.05), note_command("after", 3)),
        call_tools(write_call("p.txt", "p\n")),
        say("Done."),
    ),
    steps=(SayStep(key="k1", then="pause"), SayStep(key="k2", then="pause")),
    files={"p.txt": "p\n"},
)
RETRY = ProofScenario(
    name="retry",
    lines=(
        call_tools(note_command("first", 2)),
        say("Not good."),
        call_tools(write_call("r.txt", "r\n"), note_command("second", 3)),
        say("Better."),
    ),
    # The script goes on where it was, though the model no longer sees what it said.
    steps=(SayStep(key="k1"), RetryStep(text="Once more, after ⟨1⟩.")),
    files={"r.txt": "r\n"},
)
ERASE = ProofScenario(
    name="erase",
    lines=(
        call_tools(("shell", {"command": f"echo told >> journal; echo said told {SECRET}; exit 3"})),
        say(f"I have seen {SECRET}."),
        call_tools(note_command("after", 4)),
        say("Done."),
    ),
    steps=(SayStep(key="k1"), EraseStep(), SayStep(key="k2")),
)
DELIVERY = ProofScenario(
    name="delivery",
    lines=(
        call_tools(("notify", {"title": "begun", "text": "It takes a while."}), note_command("work", 2, seconds=0.02)),
        call_tools(("notify", {"title": "half"}), ("notify", {"title": "nearly", "urgency": "low"})),
        say("Told."),
        call_tools(("notify", {"title": "over"})),
        say("Told again."),
    ),
    steps=(SayStep(key="k1"), SayStep(key="k2")),
)
NOTIFY = ProofScenario(
    name="notify",
    mode="ask",
    on=("asked", "ended"),
    lines=(
        call_tools(note_command("may", 4), ("ask_user", {"questions": [{"question": "Which colour?"}]})),
        say("Asked."),
    ),
)

BUDGET = ProofScenario(
    name="budget",
    # Eight rounds are enough for a warning; a kill or two in mid-answer add what nobody knows, and still fit.
    budget=Budget(
        session=BudgetCaps(rounds=10), tree=BudgetCaps(tokens=1_000_000), day=BudgetCaps(money=1_000_000), answer=500
    ),
    on=("budget",),
    lines=(
        call_tools(note_command("one", 1)),
        call_tools(write_call("b.txt", "b\n")),
        call_tools(read_call("b.txt")),
        say("Half."),
        call_tools(note_command("two", 2)),
        call_tools(read_call("b.txt")),
        call_tools(read_call("b.txt")),
        say("Done."),
    ),
    steps=(SayStep(key="k1"), SayStep(key="k2")),
    files={"b.txt": "b\n"},
)

SCENARIOS: dict[str, ProofScenario] = {
    each.name: each
    for each in (
        FILES,
        PLACES,
        SHELL,
        READS,
        APPROVALS,
        OUTSIDE,
        COMPACTION,
        STEERING,
        FORK,
        JOBS,
        UNDO,
        CANCEL,
        PAUSE,
        RETRY,
        ERASE,
        DELIVERY,
        NOTIFY,
        BUDGET,
    )
}
