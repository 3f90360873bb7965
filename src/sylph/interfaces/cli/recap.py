"""What a person sees first in a chat: where they are, and what was said before."""

from pathlib import Path

from sylph.app import App
from sylph.core.text import count
from sylph.engine.summary import Summary
from sylph.interfaces.cli.conversation import Chat
from sylph.interfaces.confinement import warning
from sylph.interfaces.narrate import chat_only
from sylph.interfaces.pending import reminder
from sylph.interfaces.render import Line, flat, line
from sylph.interfaces.transcript import last_words

# How far back the last words of a session are looked for.
TAIL = 300


async def greeting(chat: Chat, folder: Path, summary: Summary | None) -> list[Line]:
    """Where we are: model, mode, folder; what waits to be finished here; of a session, what was said last."""
    model, mode = (summary.model, summary.mode) if summary else (chat.model, chat.mode)
    place = line(f"{flat(model, 60)} · mode {mode} · {folder} · /help", "dim")
    said = warning(chat.app, off=bool(chat.unconfined))
    waiting = await reminder(chat.app.runtime, folder, but=summary.id if summary else "")
    warned = [line(said, "warn")] if said else []
    if chat.app.chats(model):
        warned.insert(0, line(f"{chat_only(model)}: it answers, and can neither look nor do anything", "warn"))
    return [place, *warned, *waiting, *(await recap(chat.app, summary) if summary else [])]


async def recap(app: App, summary: Summary) -> list[Line]:
    """What a session was about, and how its conversation stands."""
    title = line(f"{summary.id}: {flat(summary.title)} ({count(summary.turns, 'turn')})", "dim")
    tail = await app.runtime.read(summary.id, after=max(summary.seq - TAIL, 0), limit=TAIL)
    return [title, *last_words(tail)]
