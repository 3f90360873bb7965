"""The journal of a command, read: what was meant, what began, how it ended."""

import contextlib
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sylph.core.command_run import StopReason
from sylph.engine.commands import processes


class _Intent(msgspec.Struct):
    runner: int
    runner_start: str
    boot: str
    argv: list[str] = []
    job: bool = False
    title: str = ""
    interactive: bool = False
    sealed: bool = False
    at: float = 0.0


class _Started(msgspec.Struct):
    pid: int
    start: str


class CommandEnd(msgspec.Struct):
    bytes: int
    head: int
    exit: int = 0
    why: StopReason = ""
    seconds: float = 0.0
    left: bool = False
    failed: int = 0
    unboxed: bool = False


class _Input(msgspec.Struct):
    id: str
    taken: bool
    open: bool


class _Line(msgspec.Struct):
    intent: _Intent | None = None
    started: _Started | None = None
    input: _Input | None = None
    ended: CommandEnd | None = None


class JournaledCommand(Struct):
    """What the journal says of a command so far."""

    intent: _Intent | None = None
    started: _Started | None = None
    ended: CommandEnd | None = None
    inputs: dict[str, bool] = field(default_factory=dict[str, bool])
    """What was sent to it, by its key, and whether it was taken."""
    closed: bool = False

    @property
    def runner_alive(self) -> bool:
        """Whether the runner that keeps this journal still lives."""
        intent = self.intent
        return bool(intent and processes.boot_id() == intent.boot and process_alive(intent.runner, intent.runner_start))

    @property
    def accepts_input(self) -> bool:
        """Whether it can be given more to read."""
        return bool(self.intent and self.intent.interactive and not self.closed and not self.ended)

    @property
    def running(self) -> bool:
        return bool(self.started and process_alive(self.started.pid, self.started.start))


def read_journal(path: Path) -> JournaledCommand:
    story = JournaledCommand()
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return story
    for line in lines:
        # The last line may be half written; then it counts as not written.
        with contextlib.suppress(msgspec.DecodeError):
            said = msgspec.json.decode(line, type=_Line)
            story.intent = said.intent or story.intent
            story.started = said.started or story.started
            story.ended = said.ended or story.ended
            if said.input:
                story.inputs[said.input.id] = said.input.taken
                story.closed = not said.input.open
    return story


def process_alive(pid: int, start: str) -> bool:
    """Whether exactly this process lives: a number alone may have been given to another one since."""
    return processes.start_time(pid) == start != "" and not processes.is_zombie(pid)


def describe_loss(story: JournaledCommand) -> str:
    if story.intent and processes.boot_id() != story.intent.boot:
        return "the machine was restarted while it ran"
    if story.started is None:
        return "its runner died at the moment it was to be started"
    if story.running:
        return "its runner died; the command itself was still running and was ended"
    return "its runner died before it, and nobody saw how it ended"
