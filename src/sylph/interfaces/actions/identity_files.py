"""The files that tell Sylph who it is, as doors read and change them."""

from sylph.config import Config
from sylph.core.errors import NotFound, UserError
from sylph.core.text.suggestion import suggest_word
from sylph.features.identity.identity_notes import IDENTITY_FILES, MAX_LENGTH
from sylph.interfaces.actions.file_versions import VersionedFile, versions_folder

VERSIONED_FILES = ("config", *IDENTITY_FILES)


def open_identity_file(config: Config, name: str) -> VersionedFile:
    """One of the files, with its earlier versions. Raises NotFound for a name that there is none for."""
    if name not in IDENTITY_FILES:
        raise NotFound(
            f"There is no {name!r}.{suggest_word(name, IDENTITY_FILES)}", next=[f"one of {', '.join(IDENTITY_FILES)}"]
        )
    return VersionedFile(config.home / IDENTITY_FILES[name].file, versions_folder(config.home, name))


def move_legacy_versions(config: Config) -> None:
    """Sees to it that no earlier version lies where the chat keeps what is typed."""
    for name in VERSIONED_FILES:
        versions_folder(config.home, name)


def validate_identity_text(text: str) -> str:
    """The text, if all of it can be told. Raises UserError where it is nothing, or too much."""
    if not text.strip():
        raise UserError("There is nothing in that text.", kind="empty", next=["remove it instead"])
    if "\0" in text:
        raise UserError("That is not a text.", next=["Markdown, in UTF-8"])
    if len(text) > MAX_LENGTH:
        raise UserError(
            f"It has {len(text):,} characters; {MAX_LENGTH:,} can be told to a model.",
            kind="too_large",
            next=["shorten it"],
        )
    return text
