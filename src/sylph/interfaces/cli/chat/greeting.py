"""What a person sees first in a chat: where they are, and what was said before."""

from pathlib import Path

from sylph.app import App
from sylph.core.text.formatting import count_noun
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.cli.chat.conversation import TerminalChat
from sylph.interfaces.text.interrupted_turn import resume_reminder
from sylph.interfaces.text.render import StyledLine, one_line, styled_line
from sylph.interfaces.text.sandbox_notice import sandbox_warning
from sylph.interfaces.text.transcript import recent_exchanges
from sylph.interfaces.text.turn_presenter import chat_only_notice

# How far back the last words of a session are looked for.
TAIL_EVENTS = 300


async def greeting_lines(chat: TerminalChat, folder: Path, summary: SessionState | None) -> list[StyledLine]:
    """Where we are: model, mode, folder; what waits to be finished here; of a session, what was said last."""
    model, mode = (summary.model, summary.mode) if summary else (chat.model, chat.mode)
    place = styled_line(f"{one_line(model, 60)} · mode {mode} · {folder} · /help", "dim")
    said = sandbox_warning(chat.app, off=bool(chat.sandbox_notice))
    waiting = await resume_reminder(chat.app.runtime, folder, but=summary.id if summary else "")
    warned = [styled_line(said, "warn")] if said else []
    if chat.app.is_chat_only(model):
        warned.insert(
            0, styled_line(f"{chat_only_notice(model)}: it answers, and can neither look nor do anything", "warn")
        )
    return [place, *warned, *waiting, *(await recap_lines(chat.app, summary) if summary else [])]


async def recap_lines(app: App, summary: SessionState) -> list[StyledLine]:
    """What a session was about, and how its conversation stands."""
    title = styled_line(f"{summary.id}: {one_line(summary.title)} ({count_noun(summary.turns, 'turn')})", "dim")
    tail = await app.runtime.read_events(summary.id, after=max(summary.seq - TAIL_EVENTS, 0), limit=TAIL_EVENTS)
    return [title, *recent_exchanges(tail)]
