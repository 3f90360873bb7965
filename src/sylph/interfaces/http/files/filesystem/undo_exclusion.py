"""What a person changes while an agent's call runs is told to undo, which would else take it for the call's work."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sylph.core.ids import new_id
from sylph.core.tool import CallAssessment
from sylph.interfaces.http.files.filesystem import path_names
from sylph.interfaces.http.files.filesystem.workspace_root import WorkspaceRoot
from sylph.interfaces.http.state.server_state import ServerState

PERSON = "http"


@asynccontextmanager
async def exclude_from_undo(server: ServerState, where: WorkspaceRoot, *given: str) -> AsyncGenerator[None, None]:
    """While this is open, what changes at these paths is the person's."""
    watch = server.app.runtime.executor.watch
    paths = tuple(str(where.root.joinpath(*path_names.split_path(each))) for each in given)
    roots = watch.busy_workspaces(str(where.root), paths)
    if not roots:
        yield
        return
    call, judged = new_id(), CallAssessment("write", "safe", writes=paths)
    for root in roots:
        await watch.before_call(PERSON, call, root, judged)
    try:
        yield
    finally:
        for root in roots:
            await watch.after_call(PERSON, call, root, ok=True)
        watch.release_call(PERSON, call)
