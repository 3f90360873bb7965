"""All that can be asked of sessions, by subject."""

from sylph.interfaces.http import (
    acts,
    answers,
    jobs,
    messages,
    session_facts,
    sessions,
    tasks,
    transfer,
    turns,
    undoing,
)
from sylph.interfaces.http.route import Routes

SUBJECTS: tuple[Routes, ...] = (
    sessions.routes,
    messages.routes,
    acts.routes,
    answers.routes,
    undoing.routes,
    turns.routes,
    session_facts.routes,
    jobs.routes,
    transfer.routes,
    tasks.routes,
)
