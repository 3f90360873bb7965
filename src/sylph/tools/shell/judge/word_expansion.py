"""Words to arguments: braces, tildes, variables and wildcards, as far as they are known before the command runs."""

import glob
import pwd
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product

from msgspec import Struct

from sylph.tools.shell.judge.syntax_tree import LiteralText, ShellWord, Substitution

MOST = 64
BRACES = 16
LONGEST = 4096
_SEQUENCE = re.compile(r"-?\d{1,4}\.\.-?\d{1,4}|[A-Za-z]\.\.[A-Za-z]")
_WILD = re.compile(r"[*?]|\[.+\]")

Parts = tuple[LiteralText | Substitution, ...]
Variables = Mapping[str, frozenset[str] | None]
"""What each variable may hold; None where only the run can tell."""


class ShellArg(Struct, frozen=True):
    """One argument. What is not `known` has its source as text; a `choice` is one of several that it may be."""

    text: str
    known: bool = True
    pattern: str = ""
    choice: bool = False
    loose: bool = False
    """Whether only the run can tell how many words it becomes."""

    @property
    def may_be_option(self) -> bool:
        return (
            self.text[:1] in ("-", "+") if self.is_certain else self.text[:1] in ("", "-", "+", "$", "`", "*", "?", "[")
        )

    @property
    def is_certain(self) -> bool:
        return self.known and not self.pattern

    @property
    def exact_text(self) -> str | None:
        """The text, if that is what the argument will be."""
        return self.text if self.is_certain and not self.choice else None


class _Field(Struct):
    text: str = ""
    pattern: str = ""
    known: bool = True
    begun: bool = False
    loose: bool = False

    def add(self, text: str, *, bare: bool, known: bool = True) -> None:
        self.text += text
        self.pattern += text if bare else glob.escape(text)
        self.known, self.begun = self.known and known, True

    def to_arg(self, *, choice: bool) -> ShellArg:
        wild = glob.escape(self.text) != self.pattern and _WILD.search(self.text)
        return ShellArg(self.text, self.known, self.pattern if wild else "", choice, self.loose)


def expand_word(word: ShellWord, variables: Variables) -> list[ShellArg]:
    """The arguments that the word becomes: none, one or many."""
    found: dict[ShellArg, None] = {}
    braces = _bare_text(word.parts).count("{")
    several = list(islice(_expand_braces(word.parts), MOST + 1)) if braces <= BRACES else []
    if braces and (not several or len(several) > MOST or _has_stray_braces(word.parts, several)):
        return [ShellArg(word.raw, known=False, loose=True)]
    several = several or [word.parts]
    for parts in several:
        for arg in _expand_parts(_expand_tilde(parts), variables):
            found[arg] = None
    return list(found)


def _bare_text(parts: Parts) -> str:
    return "".join(part.text for part in parts if isinstance(part, LiteralText) and part.bare)


def _has_stray_braces(parts: Parts, expanded: Sequence[Parts]) -> bool:
    """Whether braces are left that bash may take for a group all the same."""
    text = _bare_text(parts)
    return ("," in text or ".." in text) and any(brace in _bare_text(each) for each in expanded for brace in "{}")


def expand_value(word: ShellWord, variables: Variables) -> frozenset[str] | None:
    """What a variable can be given by the word: it is not split, and wildcards stay as they are."""
    parts = _expand_tilde(word.parts)
    alternatives = _list_alternatives(parts, variables)
    if alternatives is None:
        return None
    found = frozenset("".join(text for text, _ in each) for each in alternatives)
    return found if all(len(text) <= LONGEST for text in found) else None


def _expand_parts(parts: Parts, variables: Variables) -> Iterable[ShellArg]:
    alternatives = _list_alternatives(parts, variables)
    if alternatives is None:
        yield from _split_fields(
            ((part.text if isinstance(part, LiteralText) else part.raw, part) for part in parts), choice=False
        )
        return
    for each in alternatives:
        yield from _split_fields(each, choice=len(alternatives) > 1)


def _list_alternatives(
    parts: Parts, variables: Variables
) -> Sequence[Sequence[tuple[str, LiteralText | Substitution]]] | None:
    """Each way the word may come out; None if only the run can tell."""
    if any(isinstance(part, LiteralText) and part.bare and "$" in part.text for part in parts) and any(
        map(_is_splitting, parts)
    ):
        # With a dollar that stands for itself, bash does not divide the word.
        return None
    options: list[list[tuple[str, LiteralText | Substitution]]] = []
    count = 1
    for part in parts:
        values = frozenset({part.text}) if isinstance(part, LiteralText) else _variable_values(part, variables)
        if values is None:
            return None
        options.append([(text, part) for text in sorted(values)])
        count *= len(values)
        if count > MOST:
            return None
    return list(product(*options))


def _is_splitting(part: LiteralText | Substitution) -> bool:
    return isinstance(part, Substitution) and part.bare


def _variable_values(hole: Substitution, variables: Variables) -> frozenset[str] | None:
    if hole.name == "IFS" and "IFS" not in variables:
        return frozenset({" \t\n"})
    if hole.bare and "IFS" in variables:
        # Where words end is not known any more.
        return None
    return variables.get(hole.name) if hole.name else None


def _split_fields(pieces: Iterable[tuple[str, LiteralText | Substitution]], *, choice: bool) -> Iterable[ShellArg]:
    """The fields of a word, divided where an unquoted variable holds blanks."""
    field = _Field()
    for text, part in pieces:
        if isinstance(part, LiteralText) or not part.bare:
            unknown = isinstance(part, Substitution) and text == part.raw
            field.add(text, bare=part.bare, known=not unknown)
            continue
        if text == part.raw:
            field.add(text, bare=False, known=False)
            field.loose = True
            continue
        for number, piece in enumerate(re.split(r"[ \t\n]+", text)):
            if number and field.begun:
                yield field.to_arg(choice=choice)
                field = _Field()
            if piece:
                field.add(piece, bare=True)
    if field.begun:
        yield field.to_arg(choice=choice)


def _expand_tilde(parts: Parts) -> Parts:
    """A tilde at the start stands for a home."""
    first = parts[0] if parts else None
    if not isinstance(first, LiteralText) or not first.bare or not first.text.startswith("~"):
        return parts
    user, slash, rest = first.text.partition("/")
    known = _home_folder(user[1:]) if slash or len(parts) == 1 else ""
    if known:
        return (LiteralText(known, bare=False), LiteralText(f"{slash}{rest}", bare=True), *parts[1:])
    hole = Substitution(user, "HOME" if user == "~" and (slash or len(parts) == 1) else "", bare=False)
    return (hole, LiteralText(f"/{rest}", bare=True), *parts[1:]) if slash else (hole, *parts[1:])


def _home_folder(user: str) -> str:
    """The home of somebody by name; empty where nobody is called so."""
    try:
        return pwd.getpwnam(user).pw_dir if user else ""
    except (KeyError, ValueError):
        return ""


def _expand_braces(parts: Parts) -> Iterable[Parts]:
    """`a{b,c}` as ab and ac."""
    for index, part in enumerate(parts):
        if isinstance(part, LiteralText) and part.bare and "{" in part.text:
            found = _first_brace_group(parts, index)
            if found:
                before, choices, after = found
                for choice in choices:
                    yield from _expand_braces((*before, *choice, *after))
                return
    yield parts


def _first_brace_group(parts: Parts, index: int) -> tuple[Parts, list[Parts], Parts] | None:
    """The first group of braces that begins in the part at `index`: what is before, what is in it, what is after."""
    text = parts[index]
    assert isinstance(text, LiteralText)
    for begin in (found.start() for found in re.finditer("{", text.text)):
        choices: list[list[LiteralText | Substitution]] = [[]]
        level = 0
        rest: Sequence[LiteralText | Substitution] = (
            LiteralText(text.text[begin + 1 :], bare=True),
            *parts[index + 1 :],
        )
        for number, part in enumerate(rest):
            if not isinstance(part, LiteralText) or not part.bare:
                choices[-1].append(part)
                continue
            end, level = _divide_choices(part.text, level, choices)
            if end >= 0:
                complete = len(choices) > 1 or _expand_sequence(choices)
                if not complete:
                    break
                before = (*parts[:index], LiteralText(text.text[:begin], bare=True)) if begin else parts[:index]
                after = (LiteralText(part.text[end:], bare=True), *rest[number + 1 :])
                return before, [tuple(choice) for choice in choices], after if part.text[end:] else rest[number + 1 :]
    return None


def _divide_choices(text: str, level: int, choices: list[list[LiteralText | Substitution]]) -> tuple[int, int]:
    """Adds `text` to the choices. Where the group ends in it, and the level of braces it leaves open."""
    begin = 0
    for at, char in enumerate(text):
        level += (char == "{") - (char == "}")
        if level < 0 or (char == "," and level == 0):
            if text[begin:at]:
                choices[-1].append(LiteralText(text[begin:at], bare=True))
            begin = at + 1
            if level < 0:
                return at + 1, level
            choices.append([])
    if text[begin:]:
        choices[-1].append(LiteralText(text[begin:], bare=True))
    return -1, level


def _expand_sequence(choices: list[list[LiteralText | Substitution]]) -> bool:
    """A group such as {1..9}: put into `choices` as what it counts."""
    only = choices[0]
    if len(only) != 1 or not isinstance(only[0], LiteralText) or not _SEQUENCE.fullmatch(only[0].text):
        return False
    first, _, last = only[0].text.partition("..")
    numbers = first.lstrip("-").isdigit()
    low, high = sorted((int(first), int(last)) if numbers else (ord(first), ord(last)))
    choices[:] = [
        [LiteralText(str(each) if numbers else chr(each), bare=True)] for each in range(low, min(high, low + MOST) + 1)
    ]
    return True
