"""The files that tell Sylph who it is, as doors read and change them."""

from sylph.config import Config
from sylph.core.errors import NotFound, UserError
from sylph.core.similar import guess
from sylph.faculties.identity import LONGEST, PARTS
from sylph.interfaces.versions import Versions, folder_of

VERSIONED = ("config", *PARTS)


def written(config: Config, name: str) -> Versions:
    """One of the files, with its earlier versions. Raises NotFound for a name that there is none for."""
    if name not in PARTS:
        raise NotFound(f"There is no {name!r}.{guess(name, PARTS)}", next=[f"one of {', '.join(PARTS)}"])
    return Versions(config.home / PARTS[name].file, folder_of(config.home, name))


def settle(config: Config) -> None:
    """Sees to it that no earlier version lies where the chat keeps what is typed."""
    for name in VERSIONED:
        folder_of(config.home, name)


def fits(text: str) -> str:
    """The text, if all of it can be told. Raises UserError where it is nothing, or too much."""
    if not text.strip():
        raise UserError("There is nothing in that text.", kind="empty", next=["remove it instead"])
    if "\0" in text:
        raise UserError("That is not a text.", next=["Markdown, in UTF-8"])
    if len(text) > LONGEST:
        raise UserError(
            f"It has {len(text):,} characters; {LONGEST:,} can be told to a model.",
            kind="too_large",
            next=["shorten it"],
        )
    return text
