"""What a person changes while an agent's call runs is told to undo, which would else take it for the call's work."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sylph.core.ids import new_id
from sylph.core.tool import Judged
from sylph.interfaces.http.files import names
from sylph.interfaces.http.files.spot import Ground
from sylph.interfaces.http.house import House

PERSON = "http"


@asynccontextmanager
async def aside(house: House, where: Ground, *given: str) -> AsyncGenerator[None, None]:
    """While this is open, what changes at these paths is the person's."""
    watch = house.app.runtime.executor.watch
    paths = tuple(str(where.root.joinpath(*names.parts(each))) for each in given)
    roots = watch.busy(str(where.root), paths)
    if not roots:
        yield
        return
    call, judged = new_id(), Judged("write", "safe", writes=paths)
    for root in roots:
        await watch.before(PERSON, call, root, judged)
    try:
        yield
    finally:
        for root in roots:
            await watch.after(PERSON, call, root, ok=True)
        watch.done(PERSON, call)
