"""All that can be asked of sessions, by subject."""

from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.sessions import (
    answers,
    export_import,
    facts,
    jobs,
    messages,
    session_routes,
    tasks,
    turn_control,
    turns,
    undo,
)

SESSION_ROUTES: tuple[RouteGroup, ...] = (
    session_routes.routes,
    messages.routes,
    turn_control.routes,
    answers.routes,
    undo.routes,
    turns.routes,
    facts.routes,
    jobs.routes,
    export_import.routes,
    tasks.routes,
)
