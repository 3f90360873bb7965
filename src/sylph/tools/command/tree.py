"""A command line as a tree: what bash would make of the text, before anything is expanded."""

from typing import Literal

from msgspec import Struct


class Unparsable(Exception):
    """The text is not a command line that can be read with certainty."""


class Lit(Struct, frozen=True):
    """Text that stands for itself; in `bare` text braces, tildes and wildcards still have their meaning."""

    text: str
    bare: bool = False


class Hole(Struct, frozen=True):
    """What only the run can tell: a variable by its `name`, or else a substitution."""

    raw: str
    name: str = ""
    bare: bool = False


class Word(Struct, frozen=True):
    parts: tuple[Lit | Hole, ...]
    scripts: tuple["Script", ...] = ()
    """What runs while the word is expanded."""
    sets: tuple[str, ...] = ()
    """Variables that get a value while the word is expanded."""
    sums: tuple[str, ...] = ()
    """Variables whose text is worked out as a sum."""
    odd: str = ""
    """What in it could run something that cannot be seen here."""

    @property
    def plain(self) -> str | None:
        """The text of a word that is nothing but bare text."""
        first = self.parts[0] if len(self.parts) == 1 else None
        return first.text if isinstance(first, Lit) and first.bare else None

    @property
    def quoted(self) -> bool:
        return any(not part.bare for part in self.parts) or not self.parts

    @property
    def raw(self) -> str:
        return "".join(part.text if isinstance(part, Lit) else part.raw for part in self.parts)


class Here(Struct):
    """The body of a here-document, which is read only after the line that announces it."""

    mark: str
    expand: bool
    tabs: bool
    body: Word | None = None


class Redirect(Struct, frozen=True):
    """`target` is None where a descriptor is copied or closed, or the text itself is given."""

    op: str
    target: Word | None = None
    here: Here | None = None


class Assign(Struct, frozen=True):
    name: str
    value: tuple[Word, ...]
    array: bool = False
    index: Word | None = None


class Simple(Struct, frozen=True):
    words: tuple[Word, ...] = ()
    assigns: tuple[Assign, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Pipeline(Struct, frozen=True):
    parts: tuple["Node", ...]


class Block(Struct, frozen=True):
    """Anything that holds commands. What is in a `shell` cannot change the shell around it; what is in a `maybe` may
    not happen at all, or happen often."""

    kind: Literal["same", "shell", "maybe"]
    body: "Script" = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    name: str = ""
    """The variable that takes each of the words as its value."""
    sums: bool = False
    """Whether the words are sums, in which a variable's value is worked out too."""


class Function(Struct, frozen=True):
    name: str
    body: "Node"


class Step(Struct, frozen=True):
    """One pipeline of a list. `after` is the operator before it."""

    node: "Node"
    after: str = ";"
    alone: bool = False
    """Run in the background."""


Node = Simple | Pipeline | Block | Function
Script = tuple[Step, ...]
