"""One simple command that is to be judged, and its options."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from sylph.core.permission.types import Effect, Risk
from sylph.tools.shell.judge.effects import CommandEffects
from sylph.tools.shell.judge.word_expansion import ShellArg


class NestedJudge(Protocol):
    """Judges what a command runs in its turn."""

    def judge_command(self, args: Sequence[ShellArg], fed: "StdinSource") -> None: ...
    def judge_script(self, text: str) -> None: ...


class StdinSource(Struct, frozen=True):
    """What comes in on the standard input of a command."""

    kind: Literal["nothing", "pipe", "file", "download", "text"] = "nothing"
    text: str | None = None


NO_STDIN = StdinSource()


class ProgramCall(Struct, frozen=True):
    name: str
    args: tuple[ShellArg, ...]
    effects: CommandEffects
    shell: NestedJudge
    stdin: StdinSource = NO_STDIN

    def note(self, effect: Effect, risk: Risk, reason: str) -> None:
        self.effects.note(effect, risk, reason)

    def note_read_only(self) -> None:
        self.note("read", "safe", "only looks")

    def judge_nested(self, args: Sequence[ShellArg]) -> None:
        """The command runs another one."""
        self.shell.judge_command(args, self.stdin)

    def judge_script(self, arg: ShellArg) -> None:
        """The command runs a text as a command line."""
        text = arg.exact_text
        if text is None:
            self.note("write", "dangerous", "runs a text that only the run can tell")
        else:
            self.shell.judge_script(text)

    def arg_texts(self) -> list[str]:
        return [arg.text for arg in self.args]


ProgramHandler = Callable[[ProgramCall], None]


class ParsedOptions(Struct):
    given: list[tuple[str, ShellArg | None]] = field(default_factory=list[tuple[str, ShellArg | None]])
    operands: list[ShellArg] = field(default_factory=list[ShellArg])
    unsure: bool = False
    """Whether something may be an option that only the run can tell."""

    def has(self, *wanted: str) -> bool:
        return any(_same_option(name, each) for name, _ in self.given for each in wanted)

    def values(self, *wanted: str) -> list[ShellArg]:
        return [value for name, value in self.given if value and any(_same_option(name, each) for each in wanted)]


def _same_option(given: str, wanted: str) -> bool:
    """Long options may be shortened as far as they stay clear."""
    return given == wanted or (len(given) > 3 and given.startswith("--") and wanted.startswith(given))


def parse_options(
    args: Iterable[ShellArg], taking: frozenset[str] = frozenset(), *, leading: bool = False
) -> ParsedOptions:
    """The options and what else is given. Those in `taking` have a value; `leading` ones stop at the first operand."""
    found = ParsedOptions()
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg.exact_text == "--":
            found.operands += rest
            break
        if arg.is_certain and arg.text[:1] == "-" and len(arg.text) > 1:
            found.unsure = found.unsure or arg.choice
            _parse_option(arg.text, rest, taking, found)
            continue
        found.unsure = found.unsure or (not arg.is_certain and arg.may_be_option)
        found.operands.append(arg)
        if leading:
            found.operands += rest
            break
    return found


def _parse_option(text: str, rest: list[ShellArg], taking: frozenset[str], found: ParsedOptions) -> None:
    name, equals, value = text.partition("=")
    if text.startswith("--"):
        if equals:
            found.given.append((name, ShellArg(value)))
        elif any(_same_option(name, each) for each in taking if each.startswith("--")):
            found.given.append((name, rest.pop(0) if rest else None))
        else:
            found.given.append((name, None))
        return
    for at, letter in enumerate(text[1:], start=1):
        if f"-{letter}" in taking:
            value = text[at + 1 :]
            found.given.append((f"-{letter}", ShellArg(value) if value else rest.pop(0) if rest else None))
            return
        found.given.append((f"-{letter}", None))
