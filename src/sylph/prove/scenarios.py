"""What is played while the process gets killed: what a person says, what the model wants, what the end must be."""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from sylph.core.budget import Budget, Caps
from sylph.core.facts import Delivery, Mode
from sylph.core.provider import Reply
from sylph.testing import calls, say

MARKED = re.compile(r"echo (\w+) >> journal")
NOTED = re.compile(MARKED.pattern + r"; .*exit (\d+)$")
NEVER = "never"
SECRET = "hunter2-the-secret"
# What the log holds only as a placeholder, and a killed turn goes on with all the same.
KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"
TASK = "Do what the script says."


class Aside(Struct, frozen=True, kw_only=True):
    """Said while a command runs."""

    key: str
    delivery: Delivery


class Say(Struct, frozen=True, kw_only=True):
    """A message that begins a turn; the key makes saying it twice one message.

    When a call of it runs, the person can stop it, or make it pause and then go on.
    """

    key: str
    text: str = TASK
    asides: tuple[Aside, ...] = ()
    then: Literal["", "stop", "pause"] = ""


class Condense(Struct, frozen=True):
    """The person asks for a compaction."""


class Branch(Struct, frozen=True):
    """The person forks the session, and speaks in the fork from then on."""


class TakeBack(Struct, frozen=True):
    """The person undoes what was changed since a turn began."""

    turn: str


class Again(Struct, frozen=True):
    """The person has the last turn run again, in other words."""

    text: str


class Forget(Struct, frozen=True):
    """The person takes a secret out of the session."""


Step = Say | Condense | Branch | TakeBack | Again | Forget


class Scenario(Struct, frozen=True, kw_only=True):
    """`lines` is all the model ever says, in order; `files` is what the workspace holds when all is done."""

    name: str
    lines: tuple[Reply, ...]
    steps: tuple[Step, ...] = (Say(key="k1"),)
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
        return len(self.keys) + sum(isinstance(step, Again) for step in self.steps)

    @property
    def keys(self) -> list[str]:
        spoken = [step for step in self.steps if isinstance(step, Say)]
        return [key for step in spoken for key in (step.key, *(aside.key for aside in step.asides))]


Wanted = tuple[str, dict[str, object]]


def noted(word: str, code: int = 0, *, seconds: float = 0.0) -> Wanted:
    """A command that leaves its mark once each time it runs, and ends with a code of its own."""
    pause = f"sleep {seconds}; " if seconds else ""
    return "shell", {"command": f"echo {word} >> journal; {pause}echo said {word}; exit {code}"}


def write(path: str, content: str) -> Wanted:
    return "write", {"path": path, "content": content}


def edit(path: str, old: str, new: str) -> Wanted:
    return "edit", {"path": path, "old": old, "new": new}


def read(path: str) -> Wanted:
    return "read", {"path": path}


FILES = Scenario(
    name="files",
    lines=(
        calls(write("a.txt", "one\ntwo\n"), write("deep/down/b.txt", "first\n")),
        calls(edit("a.txt", "two", "three"), write("deep/down/b.txt", "second\n")),
        say("Written."),
        calls(edit("a.txt", "one", KEY)),
        say("Done."),
    ),
    steps=(Say(key="k1"), Say(key="k2")),
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
PLACES = Scenario(
    name="places",
    lines=(
        calls(write("a.txt", "one\ntwo\n"), write("old.txt", "old\n"), write("gone.txt", "gone\n")),
        calls(("patch", {"patch": PATCH}), ("multi_edit", {"path": "a.txt", "edits": [{"old": "one", "new": "1"}]})),
        calls(("copy", {"path": "new", "to": "copied"}), ("move", {"path": "new", "to": "moved/here"})),
        calls(("delete", {"path": "copied"}), ("create_directory", {"path": "empty"})),
        calls(("move", {"path": "trash:t1_c8", "to": "back"})),
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
SHELL = Scenario(
    name="shell",
    lines=(
        calls(noted("alpha", 3)),
        calls(noted("beta"), noted("gamma", 7, seconds=0.05)),
        calls(("shell", {"command": f"echo much >> journal; seq 20000; : {KEY}; echo said much; exit 0"})),
        say("Run."),
    ),
)
READS = Scenario(
    name="reads",
    lines=(
        calls(write("a.txt", "a\n"), noted("first", 1)),
        calls(read("a.txt"), read("a.txt"), ("list", {}), ("grep", {"pattern": "first"})),
        calls(("plan", {"steps": [{"text": "look", "status": "done"}]})),
        say("Seen."),
    ),
    files={"a.txt": "a\n"},
)
APPROVALS = Scenario(
    name="approvals",
    mode="ask",
    lines=(
        # One after the other: asked for together, they would be one question.
        calls(noted("may", 4)),
        calls(noted(NEVER, 5)),
        calls(("ask_user", {"questions": [{"question": "Which colour?"}]}), write("asked.txt", "yes\n")),
        say("Asked."),
    ),
    files={"asked.txt": "yes\n"},
)
OUTSIDE = Scenario(
    name="outside",
    lines=(
        calls(("charge", {"what": "card"}), ("book", {"what": "room"})),
        calls(("book", {"what": "table"}), ("charge", {"what": "fee"})),
        say("Paid."),
    ),
)
COMPACTION = Scenario(
    name="compaction",
    window=1600,
    lines=(
        calls(noted("long", 2)),
        say("A long story. " * 120),
        calls(write("c.txt", "kept\n")),
        say("Another long story. " * 120),
        calls(noted("late", 6)),
        say("Done."),
    ),
    steps=(Say(key="k1"), Say(key="k2"), Say(key="k3"), Condense()),
    files={"c.txt": "kept\n"},
)
JOBS = Scenario(
    name="jobs",
    lines=(
        calls(("job", {"action": "start", "command": noted("built", 3, seconds=0.05)[1]["command"]})),
        calls(("job", {"action": "wait", "id": "t1_c1", "seconds": 10})),
        say("Built."),
    ),
)
STEERING = Scenario(
    name="steering",
    lines=(calls(noted("slow", 9, seconds=0.1)), calls(noted("next", 1)), say("Steered.")),
    steps=(Say(key="k1", asides=(Aside(key="k2", delivery="steer"), Aside(key="k3", delivery="follow"))),),
)
FORK = Scenario(
    name="fork",
    lines=(
        calls(write("f.txt", "old\n")),
        say("Before."),
        calls(noted("forked", 8), write("f.txt", "new\n")),
        say("After."),
    ),
    steps=(Say(key="k1"), Branch(), Say(key="k2")),
    files={"f.txt": "new\n"},
)

UNDO = Scenario(
    name="undo",
    lines=(
        calls(write("a.txt", "one\n"), write("b.txt", "two\n")),
        calls(edit("a.txt", "one", "1"), write("deep/down/c.txt", "three\n")),
        calls(("shell", {"command": "rm b.txt; echo more >> a.txt; ln -s a.txt l; mkdir -p deep/er; chmod 600 a.txt"})),
        say("Done."),
    ),
    steps=(Say(key="k1"), TakeBack("t1")),
)
CANCEL = Scenario(
    name="cancel",
    cut=True,
    lines=(
        calls(noted("stopped", 2, seconds=0.2)),
        calls(write("kept.txt", "kept\n"), noted("later", 3)),
        say("Done."),
    ),
    steps=(Say(key="k1", then="stop"), Say(key="k2", then="stop"), Say(key="k3")),
    files={"kept.txt": "kept\n"},
)
PAUSE = Scenario(
    name="pause",
    lines=(calls(noted("before", 2, seconds=0.05), noted("after", 3)), calls(write("p.txt", "p\n")), say("Done.")),
    steps=(Say(key="k1", then="pause"), Say(key="k2", then="pause")),
    files={"p.txt": "p\n"},
)
RETRY = Scenario(
    name="retry",
    lines=(
        calls(noted("first", 2)),
        say("Not good."),
        calls(write("r.txt", "r\n"), noted("second", 3)),
        say("Better."),
    ),
    # The script goes on where it was, though the model no longer sees what it said.
    steps=(Say(key="k1"), Again(text="Once more, after ⟨1⟩.")),
    files={"r.txt": "r\n"},
)
ERASE = Scenario(
    name="erase",
    lines=(
        calls(("shell", {"command": f"echo told >> journal; echo said told {SECRET}; exit 3"})),
        say(f"I have seen {SECRET}."),
        calls(noted("after", 4)),
        say("Done."),
    ),
    steps=(Say(key="k1"), Forget(), Say(key="k2")),
)
DELIVERY = Scenario(
    name="delivery",
    lines=(
        calls(("notify", {"title": "begun", "text": "It takes a while."}), noted("work", 2, seconds=0.02)),
        calls(("notify", {"title": "half"}), ("notify", {"title": "nearly", "urgency": "low"})),
        say("Told."),
        calls(("notify", {"title": "over"})),
        say("Told again."),
    ),
    steps=(Say(key="k1"), Say(key="k2")),
)
NOTIFY = Scenario(
    name="notify",
    mode="ask",
    on=("asked", "ended"),
    lines=(calls(noted("may", 4), ("ask_user", {"questions": [{"question": "Which colour?"}]})), say("Asked.")),
)

BUDGET = Scenario(
    name="budget",
    # Eight rounds are enough for a warning; a kill or two in mid-answer add what nobody knows, and still fit.
    budget=Budget(session=Caps(rounds=10), tree=Caps(tokens=1_000_000), day=Caps(money=1_000_000), answer=500),
    on=("budget",),
    lines=(
        calls(noted("one", 1)),
        calls(write("b.txt", "b\n")),
        calls(read("b.txt")),
        say("Half."),
        calls(noted("two", 2)),
        calls(read("b.txt")),
        calls(read("b.txt")),
        say("Done."),
    ),
    steps=(Say(key="k1"), Say(key="k2")),
    files={"b.txt": "b\n"},
)

SCENARIOS: dict[str, Scenario] = {
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
