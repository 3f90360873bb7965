"""One simple command that is to be judged, and its options."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from sylph.core.facts import Effect, Risk
from sylph.tools.command.expand import Arg
from sylph.tools.command.scene import Scene


class Runs(Protocol):
    """Judges what a command runs in its turn."""

    def run(self, args: Sequence[Arg], fed: "Fed") -> None: ...
    def script(self, text: str) -> None: ...


class Fed(Struct, frozen=True):
    """What comes in on the standard input of a command."""

    kind: Literal["nothing", "pipe", "file", "download", "text"] = "nothing"
    text: str | None = None


NOTHING = Fed()


class Call(Struct, frozen=True):
    name: str
    args: tuple[Arg, ...]
    scene: Scene
    shell: Runs
    fed: Fed = NOTHING

    def note(self, effect: Effect, risk: Risk, reason: str) -> None:
        self.scene.note(effect, risk, reason)

    def looks(self) -> None:
        self.note("read", "safe", "only looks")

    def run(self, args: Sequence[Arg]) -> None:
        """The command runs another one."""
        self.shell.run(args, self.fed)

    def script(self, arg: Arg) -> None:
        """The command runs a text as a command line."""
        text = arg.sure
        if text is None:
            self.note("write", "dangerous", "runs a text that only the run can tell")
        else:
            self.shell.script(text)

    def texts(self) -> list[str]:
        return [arg.text for arg in self.args]


Handler = Callable[[Call], None]


class Options(Struct):
    given: list[tuple[str, Arg | None]] = field(default_factory=list[tuple[str, Arg | None]])
    operands: list[Arg] = field(default_factory=list[Arg])
    unsure: bool = False
    """Whether something may be an option that only the run can tell."""

    def has(self, *wanted: str) -> bool:
        return any(_same(name, each) for name, _ in self.given for each in wanted)

    def values(self, *wanted: str) -> list[Arg]:
        return [value for name, value in self.given if value and any(_same(name, each) for each in wanted)]


def _same(given: str, wanted: str) -> bool:
    """Long options may be shortened as far as they stay clear."""
    return given == wanted or (len(given) > 3 and given.startswith("--") and wanted.startswith(given))


def options(args: Iterable[Arg], taking: frozenset[str] = frozenset(), *, leading: bool = False) -> Options:
    """The options and what else is given. Those in `taking` have a value; `leading` ones stop at the first operand."""
    found = Options()
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg.sure == "--":
            found.operands += rest
            break
        if arg.certain and arg.text[:1] == "-" and len(arg.text) > 1:
            found.unsure = found.unsure or arg.choice
            _option(arg.text, rest, taking, found)
            continue
        found.unsure = found.unsure or (not arg.certain and arg.may_be_option)
        found.operands.append(arg)
        if leading:
            found.operands += rest
            break
    return found


def _option(text: str, rest: list[Arg], taking: frozenset[str], found: Options) -> None:
    name, equals, value = text.partition("=")
    if text.startswith("--"):
        if equals:
            found.given.append((name, Arg(value)))
        elif any(_same(name, each) for each in taking if each.startswith("--")):
            found.given.append((name, rest.pop(0) if rest else None))
        else:
            found.given.append((name, None))
        return
    for at, letter in enumerate(text[1:], start=1):
        if f"-{letter}" in taking:
            value = text[at + 1 :]
            found.given.append((f"-{letter}", Arg(value) if value else rest.pop(0) if rest else None))
            return
        found.given.append((f"-{letter}", None))
