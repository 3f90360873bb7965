"""Commands that a session has left running in the background."""

from typing import Annotated, Literal

from fastapi import Path, Query
from msgspec import Meta, Struct

from sylph.core.errors import NotFound, UserError
from sylph.core.run import Job, Why
from sylph.interfaces.http.house import House
from sylph.interfaces.http.paging import SessionId
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.http.sessions import HERE

routes = Routes("jobs")
PIECE = 1_000_000
JobId = Annotated[str, Path(max_length=60, description="The call that started it, as `t1_c2`.")]


class JobView(Struct, frozen=True, kw_only=True):
    id: str
    session: str
    command: str
    state: Literal["running", "ended", "lost"]
    exit: int | None
    why: Annotated[Why, Meta(description="What ended it, where it did not end by itself.")]
    seconds: float
    bytes: Annotated[int, Meta(description="How much it has printed, as far as that is kept.")]


class JobOutput(Struct, frozen=True, kw_only=True):
    """A piece of what a job printed. `next` is the offset to go on from."""

    job: JobView
    offset: int
    output: str
    next: int


@routes.get("/sessions/{id}/jobs", scope="read", gives=Page[JobView], errors=HERE)
async def list_(house: House, id: SessionId) -> Page[JobView]:
    """List the jobs of a session, the oldest first."""
    session = (await house.app.runtime.find(id)).id
    return Page(items=[_view(session, job) for job in house.app.runtime.jobs(session).all()])


@routes.get("/sessions/{id}/jobs/{job}", scope="read", gives=JobView, errors=HERE)
async def get(house: House, id: SessionId, job: JobId) -> JobView:
    """Get a job."""
    session = (await house.app.runtime.find(id)).id
    return _view(session, _found(house, session, job))


@routes.get("/sessions/{id}/jobs/{job}/output", scope="read", gives=JobOutput, errors=HERE)
async def output(
    house: House,
    id: SessionId,
    job: JobId,
    offset: Annotated[int, Query(ge=0, le=2**53, description="Bytes to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=PIECE, description="Bytes at the most.")] = PIECE,
) -> JobOutput:
    """Read what a job has printed so far."""
    session = (await house.app.runtime.find(id)).id
    found = _found(house, session, job)
    piece = house.app.runtime.jobs(session).output(found.id, offset, limit)
    text = piece.decode("utf-8", "replace")
    return JobOutput(job=_view(session, found), offset=offset, output=text, next=offset + len(piece))


@routes.post("/sessions/{id}/jobs/{job}/stop", scope="chat", gives=JobView, errors=HERE)
async def stop(house: House, id: SessionId, job: JobId) -> JobView:
    """End a job and all it has started."""
    session = (await house.app.runtime.find(id)).id
    found = _found(house, session, job)
    if found.state == "ended":
        raise UserError(f"{found.id} has ended already.", kind="wrong_state", next=["GET …/jobs"])
    return _view(session, await house.app.runtime.jobs(session).stop(found.id) or found)


def _found(house: House, session: str, job: str) -> Job:
    # Only what is in the list is there: an id from outside is never a way to a file.
    for each in house.app.runtime.jobs(session).all():
        if each.id == job:
            return each
    raise NotFound(f"There is no job {job!r}.", next=["GET …/jobs"])


def _view(session: str, job: Job) -> JobView:
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
