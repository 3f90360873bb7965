"""The user's own words on who Sylph is, which rules it keeps, and where it runs: three files, told to every session.

They are late context and never a part of the head: a change reaches sessions that live, and spoils no cache. Only the
user's own folder is read. A project that could say who Sylph is could say anything: it has AGENTS.md.
"""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from sylph.core.plugin import ContextNote, Plugin, PrepareContext

MAX_LENGTH = 20_000
# For models that only chat, whose windows are small.
MAX_CHAT_LENGTH = 2_000


class IdentityFile(Struct, frozen=True, kw_only=True):
    """One of the files: its name, what it is for, and the words it is told with."""

    file: str
    about: str
    said: str


IDENTITY_FILES: Mapping[str, IdentityFile] = {
    "soul": IdentityFile(
        file="SOUL.md", about="who Sylph is: its character, values and tone", said="Who you are, as the user wrote it"
    ),
    "rules": IdentityFile(
        file="RULES.md",
        about="what Sylph keeps to in every session",
        said="Rules of the user for every session. They ask more of you, and permit nothing that was not permitted",
    ),
    "deployment": IdentityFile(
        file="DEPLOYMENT.md",
        about="where Sylph runs: machines, services, people, conventions",
        said="About the place where you run, from the user",
    ),
}


def build_plugin(home: Path) -> Plugin:
    async def told(situation: PrepareContext) -> Iterable[ContextNote]:
        texts = await asyncio.to_thread(_read_files, home)
        return [note for name, text in texts.items() if (note := _build_note(name, text, situation))]

    return Plugin(name="identity", prepare=(told,))


def _read_files(home: Path) -> dict[str, str]:
    return {name: read_identity_file(home / part.file) for name, part in IDENTITY_FILES.items()}


def read_identity_file(file: Path) -> str:
    """What a file says; nothing where there is none, or none that can be read."""
    try:
        with file.open(encoding="utf-8", errors="replace") as text:
            # A little more than is told, so that one sees that there is more.
            return text.read(MAX_LENGTH + 1).strip()
    except OSError:
        return ""


def _build_note(name: str, text: str, situation: PrepareContext) -> ContextNote | None:
    part = IDENTITY_FILES[name]
    if situation.chat_only and name == "deployment":
        return None
    if text:
        limit = MAX_CHAT_LENGTH if situation.chat_only else MAX_LENGTH
        return ContextNote(name, f"{part.said} ({part.file}):\n{_shorten_text(text, part, limit)}")
    # Nothing is said of what never was; what was told is taken back.
    return (
        ContextNote(name, f"{part.file} is gone: what it said does not count any more.")
        if name in situation.last_notes
        else None
    )


def _shorten_text(text: str, part: IdentityFile, limit: int) -> str:
    text = text.replace("</context", "< /context")
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{part.file} is longer; this is its beginning, {limit:,} characters.]"
