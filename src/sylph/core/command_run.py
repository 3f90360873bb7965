"""A command for the journaled runner: what is ordered, and what became of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

StopReason = Literal["", "time", "memory", "cpu", "processes", "stopped"]
"""What ended a command that did not end by itself."""


class SandboxWrapper(Struct, frozen=True, kw_only=True):
    """What the runner has to know of a sandboxed command. Made by the sandbox only: a tool's own is overwritten."""

    head: tuple[str, ...]
    """The program that confines, and its options, but for those with held paths."""
    limits: str = ":"
    """A line for the shell that sets what is counted per process."""
    holds: tuple[tuple[str, str], ...] = ()
    """Options with a path each. It is opened without following links, and handed over open: it can't be swapped."""
    note: str = ""
    """What the model should know if the command fails."""


class CommandSpec(Struct, frozen=True, kw_only=True):
    """A command and its limits. Of its output the first `head` and the last `tail` bytes are kept."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float | None = None
    memory: int = 0
    cpu: float = 0.0
    """Seconds of processor time that it and all it starts may use together; 0 for no limit."""
    processes: int = 0
    """How many processes there may be of it at a time; 0 for no limit."""
    head: int = 5_000_000
    tail: int = 5_000_000
    job: bool = False
    title: str = ""
    """What it is called in lists; else its last word is."""
    stdin: str | None = None
    """What it reads, to the end; None for nothing."""
    interactive: bool = False
    """Its input stays open after that, for what `Jobs.send` sends later. Only a job can be talked to."""
    repository: bool = False
    """A git command of the git tool's own that has to write the repository's config; its hooks do not run."""
    lent: str = ""
    """A folder that this command sees though no other does, by the name that its environment has for it."""
    outside: bool = False
    """To be run outside of the sandbox. Heeded only where the call was judged, and allowed, so."""
    box: SandboxWrapper | None = None


class CommandResult(Struct, frozen=True, kw_only=True):
    """How a command ended. `exit` is minus the signal that killed it, `failed` the errno if it could not start."""

    exit: int
    head: bytes
    tail: bytes = b""
    dropped: int = 0
    why: StopReason = ""
    seconds: float = 0.0
    left: bool = False
    failed: int = 0
    unboxed: bool = False
    """The sandbox could not be set up, so the command did not run."""
    note: str = ""
    """What the sandbox has to say about it."""


class LostCommand(Struct, frozen=True, kw_only=True):
    """A command whose end nobody saw: what is known of it all the same."""

    evidence: str
    head: bytes = b""


OutputSink = Callable[[bytes], None]


class CommandRunner(Protocol):
    """Commands of one call: started, found again after a crash, stopped."""

    async def run(self, order: CommandSpec, show: OutputSink) -> CommandResult | LostCommand: ...

    async def attach(self, show: OutputSink) -> CommandResult | LostCommand | None:
        """What became of a command that was ordered before; None if it never began."""
        ...


class BackgroundJob(Struct, frozen=True, kw_only=True):
    """A command in the background, by the id of the call that started it."""

    id: str
    command: str
    state: Literal["running", "ended", "lost"]
    exit: int | None = None
    why: StopReason = ""
    seconds: float = 0.0
    bytes: int = 0
    hears: bool = False
    """Whether its input is open."""


class JobInput(Struct, frozen=True, kw_only=True):
    """Something for a job to read. It is taken once, however often an input of this key is sent."""

    key: str
    text: str
    close: bool = False


class BackgroundJobs(Protocol):
    """The background commands of one session. They live on when the turn ends, and when Sylph does."""

    async def start(self, id: str, order: CommandSpec) -> BackgroundJob: ...

    def all(self) -> list[BackgroundJob]: ...

    def find(self, id: str) -> BackgroundJob | None: ...

    def recover(self, id: str) -> BackgroundJob | None:
        """The job, if a runner has begun it before a crash; None if none has, and then none will."""
        ...

    def output(self, id: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes of what it printed, from `offset` on."""
        ...

    async def wait(self, id: str, seconds: float) -> BackgroundJob | None:
        """Returns when the job has ended, or the time is over; then it still runs."""
        ...

    async def wait_output(self, id: str, size: int, seconds: float) -> BackgroundJob | None:
        """Returns when the job has printed more than `size` bytes, has ended, or the time is over."""
        ...

    async def send(self, id: str, input: JobInput) -> bool:
        """Gives a job something to read, whichever process started it; False if it was not taken."""
        ...

    def input_taken(self, id: str, key: str) -> bool:
        """Whether the input of this key was taken."""
        ...

    async def stop(self, id: str) -> BackgroundJob | None: ...
