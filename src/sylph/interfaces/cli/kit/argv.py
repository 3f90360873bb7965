"""Is it a command or a task? Decided from the words alone, before anything is parsed."""

from collections.abc import Sequence, Set

from sylph.core.errors import UserError
from sylph.core.ids import ALPHABET
from sylph.core.text.suggestion import nearest_word

# Options that take the next word as their value.
VALUE_OPTIONS = frozenset({"-m", "--model", "--mode", "-C", "--cwd", "-s", "--session", "--key", "--budget", "--label"})
INFO_OPTIONS = frozenset({"-h", "--help", "--version"})
# Commands of `session`: said without it, they are probably meant.
SESSION_COMMANDS = ("list", "show", "rename", "delete", "restore", "fork", "tree", "export", "import")
# How much a lone word must look like a command to be taken for a mistyped one.
TYPO_CUTOFF = 0.75


def arrange_argv(argv: Sequence[str], commands: Set[str]) -> list[str]:
    """The words with a command in front: `-m x chat` → `chat -m x`, `fix it` → `run fix it`, nothing → `start`."""
    options, rest = _split_leading(argv)
    if not rest:
        return list(argv) if INFO_OPTIONS & set(argv) else ["start", *argv]
    if rest[0] == "help":
        return [*rest[1:], "--help"]
    if rest[0] in commands:
        return [rest[0], *rest[1:], *options] if options else list(rest)
    if rest[0] == "--":
        return ["run", *options, *rest]
    _refuse_inner(rest)
    _refuse_typo(rest, commands)
    return ["run", *argv]


def _split_leading(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options before the first word that is none, and everything from there on."""
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] not in ("-", "--"):
        at += 2 if argv[at] in VALUE_OPTIONS else 1
    return list(argv[:at]), list(argv[at:])


def _refuse_inner(rest: Sequence[str]) -> None:
    """`show last` is `session show last`; `show me the way` is a task."""
    words = [word for word in rest if not word.startswith("-")]
    if rest[0] in SESSION_COMMANDS and (len(words) == 1 or _names_session(words[1])):
        raise _unknown_command_error(rest[0], f"session {rest[0]}", rest)


def _names_session(word: str) -> bool:
    """Whether it is `last` or looks like (the start of) an id, not like a word."""
    looks = set(word) <= set(ALPHABET) and len(word) >= 4 and any(char.isdecimal() for char in word)
    return word == "last" or looks or (len(word) == 12 and set(word) <= set(ALPHABET))


def _refuse_typo(rest: Sequence[str], commands: Set[str]) -> None:
    word = rest[0]
    words = [other for other in rest if not other.startswith("-")]
    meant = nearest_word(word, commands, cutoff=TYPO_CUTOFF)
    if meant and len(words) <= 2 and " " not in word:
        raise _unknown_command_error(word, meant, rest)


def _unknown_command_error(word: str, meant: str, rest: Sequence[str]) -> UserError:
    task = " ".join(other for other in rest if not other.startswith("-"))
    return UserError(
        f"There is no command {word!r}. Did you mean {meant!r}?",
        next=[" ".join(["sylph", meant, *rest[1:]]), f'sylph run "{task}"  if that is the task'],
    )
