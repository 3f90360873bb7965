"""A command line as a tree: what bash would make of the text, before anything is expanded."""

from typing import Literal

from msgspec import Struct


class Unparsable(Exception):
    """The text is not a command line that can be read with certainty."""


class LiteralText(Struct, frozen=True):
    """Text that stands for itself; in `bare` text braces, tildes and wildcards still have their meaning."""

    text: str
    bare: bool = False


class Substitution(Struct, frozen=True):
    """What only the run can tell: a variable by its `name`, or else a substitution."""

    raw: str
    name: str = ""
    bare: bool = False


class ShellWord(Struct, frozen=True):
    parts: tuple[LiteralText | Substitution, ...]
    scripts: tuple["Script", ...] = ()
    """What runs while the word is expanded."""
    sets: tuple[str, ...] = ()
    """Variables that get a value while the word is expanded."""
    sums: tuple[str, ...] = ()
    """Variables whose text is worked out as a sum."""
    odd: str = ""
    """What in it could run something that cannot be seen here."""

    @property
    def bare_text(self) -> str | None:
        """The text of a word that is nothing but bare text."""
        first = self.parts[0] if len(self.parts) == 1 else None
        return first.text if isinstance(first, LiteralText) and first.bare else None

    @property
    def is_quoted(self) -> bool:
        return any(not part.bare for part in self.parts) or not self.parts

    @property
    def raw(self) -> str:
        return "".join(part.text if isinstance(part, LiteralText) else part.raw for part in self.parts)


class HereDocument(Struct):
    """The body of a here-document, which is read only after the line that announces it."""

    mark: str
    expand: bool
    tabs: bool
    body: ShellWord | None = None


class Redirection(Struct, frozen=True):
    """`target` is None where a descriptor is copied or closed, or the text itself is given."""

    op: str
    target: ShellWord | None = None
    here: HereDocument | None = None


class Assignment(Struct, frozen=True):
    name: str
    value: tuple[ShellWord, ...]
    array: bool = False
    index: ShellWord | None = None


class SimpleCommand(Struct, frozen=True):
    words: tuple[ShellWord, ...] = ()
    assigns: tuple[Assignment, ...] = ()
    redirects: tuple[Redirection, ...] = ()


class ShellPipeline(Struct, frozen=True):
    parts: tuple["CommandNode", ...]


class CompoundCommand(Struct, frozen=True):
    """Anything that holds commands. What is in a `shell` cannot change the shell around it; what is in a `maybe` may
    not happen at all, or happen often."""

    kind: Literal["same", "shell", "maybe"]
    body: "Script" = ()
    words: tuple[ShellWord, ...] = ()
    redirects: tuple[Redirection, ...] = ()
    name: str = ""
    """The variable that takes each of the words as its value."""
    sums: bool = False
    """Whether the words are sums, in which a variable's value is worked out too."""


class FunctionDefinition(Struct, frozen=True):
    name: str
    body: "CommandNode"


class ScriptStep(Struct, frozen=True):
    """One pipeline of a list. `after` is the operator before it."""

    node: "CommandNode"
    after: str = ";"
    alone: bool = False
    """Run in the background."""


CommandNode = SimpleCommand | ShellPipeline | CompoundCommand | FunctionDefinition
Script = tuple[ScriptStep, ...]
