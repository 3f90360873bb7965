"""The contract of a tool: typed arguments, a declared effect, a preview, and a result that is never an exception."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sylph.core.command_run import BackgroundJobs, CommandRunner
from sylph.core.errors import ErrorReport
from sylph.core.events import Fact
from sylph.core.facts.delivery import Notification
from sylph.core.facts.tool_call import RecoveryMethod
from sylph.core.permission.types import NO_ACCESS, AccessSummary, Effect, Risk
from sylph.core.provider import ToolSpec

MAX_ITEM_CHARS, MAX_ITEMS = 500, 50


class ToolArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every tool's arguments; their JSON Schema is made from the fields."""


class ImageData(Struct, frozen=True, kw_only=True):
    """An image for the model to look at; `media` is its type, like image/png."""

    data: bytes
    media: str
    name: str = ""


class ToolResult(Struct, frozen=True, kw_only=True):
    """What a call came to. `text` is the whole output; the executor cuts what the model sees."""

    text: str
    ok: bool = True
    exit: int | None = None
    trouble: ErrorReport | None = None
    dry: bool = False
    images: tuple[ImageData, ...] = ()


class CallAssessment(Struct, frozen=True):
    """What this call, with these arguments, would do to the world: as much of it as can be told beforehand.

    Paths are absolute, with links followed as far as they lead.
    """

    effect: Effect
    risk: Risk
    why: str = ""
    reads: tuple[str, ...] = ()
    """Files and folders it looks at by name."""
    writes: tuple[str, ...] = ()
    """Files and folders it makes, changes or removes by name."""
    hosts: tuple[str, ...] = ()
    """Machines it reaches, where they are named."""
    commands: tuple[str, ...] = ()
    """Simple commands it runs, each as one line of words."""
    unsure: bool = False
    """Whether it may run commands beside these, which only the run can tell."""
    outside: bool = False
    """Whether it asks to run outside of the sandbox; that is a person's to allow, each time."""

    @property
    def reach(self) -> AccessSummary:
        """The same for the log, where nobody reads what is endless."""
        if not (self.reads or self.writes or self.hosts or self.commands or self.outside or self.why):
            return NO_ACCESS
        return AccessSummary(
            reads=_shorten_items(self.reads),
            writes=_shorten_items(self.writes),
            hosts=_shorten_items(self.hosts),
            commands=_shorten_items(self.commands),
            outside=self.outside,
            why=self.why[:MAX_ITEM_CHARS],
        )


def _shorten_items(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item[:MAX_ITEM_CHARS] for item in items[:MAX_ITEMS])


class UserQuestion(Struct, frozen=True, kw_only=True):
    text: str
    choices: tuple[str, ...] = ()
    free: bool = True


async def _notify_nobody(_: Notification) -> Sequence[str]:
    return ()


class ToolContext(Struct, frozen=True, kw_only=True):
    """All a tool may touch."""

    session: str
    call: str
    workspace: Path
    seconds: float
    output: Callable[[str], None]
    """Shows a piece of output while the call runs."""
    emit: Callable[[Fact], Awaitable[object]]
    """Writes a fact of the tool's own (the plan does)."""
    ask: Callable[[Sequence[UserQuestion]], Awaitable[Sequence[str]]]
    """Asks the person; raises Refused where nobody is there to answer."""
    full_output: Callable[[str], Awaitable[str | None]]
    """The full output of an earlier call of this session, by the call's id."""
    runner: CommandRunner
    """Runs a command so that its outcome is known even if Sylph is killed meanwhile."""
    jobs: BackgroundJobs
    """The session's commands in the background."""
    private: Path
    """A folder of this session's own outside of the workspace, made by whoever needs it."""
    notify: Callable[[Notification], Awaitable[Sequence[str]]] = _notify_nobody
    """Records a message to the person, once for this call; returns on which ways it is delivered."""
    memory: int = 0
    """Bytes that a command and its children may use together; 0 for no limit."""
    foreseen: Mapping[str, str] = field(default_factory=dict[str, str])
    """In a recovery: what was written down before the effect."""

    @property
    def idempotency_key(self) -> str:
        """Names this call for good, in a recovery too: what a service can know a repeated request by."""
        return f"{self.session}.{self.call}"


Run = Callable[[Any, ToolContext], Awaitable[ToolResult]]
Foresee = Callable[[Any, ToolContext], Awaitable[Mapping[str, str]]]
Recover = Callable[[Any, ToolContext], Awaitable[ToolResult | None]]
Preview = Callable[[Any, ToolContext], Awaitable[str]]
Judge = Callable[[Any, ToolContext], CallAssessment]


class Tool(Struct, frozen=True, kw_only=True):
    """One thing the agent can do. A tool is a value: growing by one is a file that returns one."""

    name: str
    description: str
    args: type[ToolArgs]
    run: Run
    effect: Effect
    risk: Risk = "safe"
    recourse: RecoveryMethod = "unknowable"
    preview: Preview | None = None
    """What a call would do, without doing it: the dry run, and what an approval shows."""
    judge: Judge | None = None
    """What a call would do, where that depends on its arguments."""
    foresee: Foresee | None = None
    """What to write down before the effect, so that it can be recognised after a crash."""
    recover: Recover | None = None
    """What became of a call that had started when the process died: its result; None if it surely had no effect, so
    that it can be run; Unknown is raised where nobody can tell. Without this, a call is unknown, unless it is pure or
    sends along its `Context.key`: then it is made again."""
    seconds: float | None = 120.0
    """Wall-clock limit; None for what waits for a person."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, args_schema(self.args))


def args_schema(args: type[ToolArgs]) -> dict[str, Any]:
    """The JSON Schema of `args`, inlined and without Python's class names."""
    (schema,), parts = msgspec.json.schema_components([args], ref_template="#/$defs/{name}")
    own = dict(parts[schema["$ref"].rpartition("/")[2]])
    own.pop("title", None)
    own.pop("description", None)
    others = {name: _strip_schema(part) for name, part in parts.items() if name != args.__name__}
    return {**_strip_schema(own), "$defs": others} if others else _strip_schema(own)


def _strip_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Without what goes without saying: that no text is no text, and no is no. It is paid for in every prompt."""
    fields: dict[str, dict[str, Any]] = schema.get("properties", {})
    kept = {
        name: {key: value for key, value in field.items() if key != "default" or value not in ("", 0, [], {}, None)}
        for name, field in fields.items()
    }
    return {key: value for key, value in schema.items() if key != "title"} | ({"properties": kept} if kept else {})
