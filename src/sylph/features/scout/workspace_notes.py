"""The scout: looks round before a turn begins and notes what the model should know. No model is asked."""

import asyncio
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from sylph.core.plugin import ContextNote, Plugin, PrepareContext
from sylph.core.text.formatting import truncate_middle

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
MAX_LENGTH = 24_000

MODE_NOTES = {
    "trust": "Everything you do is allowed without a question.",
    "auto_noselfmod": "Everything is allowed without a question, except changes to Sylph itself.",
    "ask": "Reading is free. The user is asked before anything is changed or run.",
    "sandbox": "Reading is free. The user is asked before anything is changed or run; Sylph itself cannot be changed.",
    "plan": "Only look and plan: nothing may be changed or run. Say what you would do.",
}


def build_plugin() -> Plugin:
    return Plugin(name="scout", prepare=(note_surroundings, note_instructions))


async def note_surroundings(situation: PrepareContext) -> Iterable[ContextNote]:
    day = time.strftime("%A, %Y-%m-%d", time.localtime(situation.now / 1000))
    date = ContextNote("date", f"Today is {day}.")
    if situation.chat_only:
        return [date]
    return [
        ContextNote(
            "workspace", f"The workspace is {situation.workspace} on {platform.system()} {platform.machine()}."
        ),
        date,
        ContextNote("mode", f"Permission mode `{situation.mode}`: {MODE_NOTES.get(situation.mode, '')}"),
    ]


async def note_instructions(situation: PrepareContext) -> Iterable[ContextNote]:
    """What the project itself tells agents, from the first of the usual files that is there."""
    if situation.chat_only:
        # Written for those who do the work, and often longer than all that such a model can hold.
        return []
    found = await asyncio.to_thread(_read_first, Path(situation.workspace))
    return [ContextNote("project", f"From {found[0]}:\n{truncate_middle(found[1], MAX_LENGTH)}")] if found else []


def _read_first(workspace: Path) -> tuple[str, str] | None:
    for name in INSTRUCTION_FILES:
        try:
            return name, (workspace / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return None
