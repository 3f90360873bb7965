"""The scout: looks round before a turn begins and notes what the model should know. No model is asked."""

import asyncio
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from sylph.core.plugin import Note, Plugin, Situation
from sylph.core.text import trim

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
LONGEST = 24_000

MODES = {
    "trust": "Everything you do is allowed without a question.",
    "auto_noselfmod": "Everything is allowed without a question, except changes to Sylph itself.",
    "ask": "Reading is free. The user is asked before anything is changed or run.",
    "sandbox": "Reading is free. The user is asked before anything is changed or run; Sylph itself cannot be changed.",
    "plan": "Only look and plan: nothing may be changed or run. Say what you would do.",
}


def plugin() -> Plugin:
    return Plugin(name="scout", prepare=(surroundings, instructions))


async def surroundings(situation: Situation) -> Iterable[Note]:
    day = time.strftime("%A, %Y-%m-%d", time.localtime(situation.now / 1000))
    date = Note("date", f"Today is {day}.")
    if situation.chat_only:
        return [date]
    return [
        Note("workspace", f"The workspace is {situation.workspace} on {platform.system()} {platform.machine()}."),
        date,
        Note("mode", f"Permission mode `{situation.mode}`: {MODES.get(situation.mode, '')}"),
    ]


async def instructions(situation: Situation) -> Iterable[Note]:
    """What the project itself tells agents, from the first of the usual files that is there."""
    if situation.chat_only:
        # Written for those who do the work, and often longer than all that such a model can hold.
        return []
    found = await asyncio.to_thread(_first, Path(situation.workspace))
    return [Note("project", f"From {found[0]}:\n{trim(found[1], LONGEST)}")] if found else []


def _first(workspace: Path) -> tuple[str, str] | None:
    for name in INSTRUCTIONS:
        try:
            return name, (workspace / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return None
