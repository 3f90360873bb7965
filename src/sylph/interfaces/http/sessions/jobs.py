"""Commands that a session has left running in the background."""

from typing import Annotated, Literal

from fastapi import Path, Query
from msgspec import Meta, Struct

from sylph.core.command_run import BackgroundJob, StopReason
from sylph.core.errors import NotFound, UserError
from sylph.interfaces.http.kit.paging import SessionId
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("jobs")
MAX_OUTPUT_BYTES = 1_000_000
JobId = Annotated[str, Path(max_length=60, description="The call that started it, as `t1_c2`.")]


class JobView(Struct, frozen=True, kw_only=True):
    id: str
    session: str
    command: str
    state: Literal["running", "ended", "lost"]
    exit: int | None
    why: Annotated[StopReason, Meta(description="What ended it, where it did not end by itself.")]
    seconds: float
    bytes: Annotated[int, Meta(description="How much it has printed, as far as that is kept.")]


class JobOutput(Struct, frozen=True, kw_only=True):
    """A piece of what a job printed. `next` is the offset to go on from."""

    job: JobView
    offset: int
    output: str
    next: int


@routes.get("/sessions/{id}/jobs", scope="read", gives=ListPage[JobView], errors=SESSION_ERRORS)
async def list_jobs(server: ServerState, id: SessionId) -> ListPage[JobView]:
    """List the jobs of a session, the oldest first."""
    session = (await server.app.runtime.find_session(id)).id
    return ListPage(items=[_job_view(session, job) for job in server.app.runtime.session_jobs(session).all()])


@routes.get("/sessions/{id}/jobs/{job}", scope="read", gives=JobView, errors=SESSION_ERRORS)
async def get_job(server: ServerState, id: SessionId, job: JobId) -> JobView:
    """Get a job."""
    session = (await server.app.runtime.find_session(id)).id
    return _job_view(session, _find_job(server, session, job))


@routes.get("/sessions/{id}/jobs/{job}/output", scope="read", gives=JobOutput, errors=SESSION_ERRORS)
async def get_job_output(
    server: ServerState,
    id: SessionId,
    job: JobId,
    offset: Annotated[int, Query(ge=0, le=2**53, description="Bytes to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_OUTPUT_BYTES, description="Bytes at the most.")] = MAX_OUTPUT_BYTES,
) -> JobOutput:
    """Read what a job has printed so far."""
    session = (await server.app.runtime.find_session(id)).id
    found = _find_job(server, session, job)
    piece = server.app.runtime.session_jobs(session).output(found.id, offset, limit)
    text = piece.decode("utf-8", "replace")
    return JobOutput(job=_job_view(session, found), offset=offset, output=text, next=offset + len(piece))


@routes.post("/sessions/{id}/jobs/{job}/stop", scope="chat", gives=JobView, errors=SESSION_ERRORS)
async def stop_job(server: ServerState, id: SessionId, job: JobId) -> JobView:
    """End a job and all it has started."""
    session = (await server.app.runtime.find_session(id)).id
    found = _find_job(server, session, job)
    if found.state == "ended":
        raise UserError(f"{found.id} has ended already.", kind="wrong_state", next=["GET …/jobs"])
    return _job_view(session, await server.app.runtime.session_jobs(session).stop(found.id) or found)


def _find_job(server: ServerState, session: str, job: str) -> BackgroundJob:
    # Only what is in the list is there: an id from outside is never a way to a file.
    for each in server.app.runtime.session_jobs(session).all():
        if each.id == job:
            return each
    raise NotFound(f"There is no job {job!r}.", next=["GET …/jobs"])


def _job_view(session: str, job: BackgroundJob) -> JobView:
    return JobView(
        id=job.id,
        session=session,
        command=job.command,
        state=job.state,
        exit=job.exit,
        why=job.why,
        seconds=round(job.seconds, 3),
        bytes=job.bytes,
    )
