"""The runtime of a running server, with the face of one's own."""

from collections.abc import AsyncGenerator, Iterable

from sylph.app import App
from sylph.core.changes import FilesRestored, UndoStarted
from sylph.core.commands import Command
from sylph.core.errors import UserError
from sylph.core.events import Event
from sylph.engine.budget.accounts import Account
from sylph.engine.budget.store import Hold, Stand
from sylph.engine.context import Context
from sylph.engine.log import Log
from sylph.engine.resumed import Resumed
from sylph.engine.runtime import NewSession, Parts, Runtime
from sylph.engine.summary import Summary
from sylph.engine.tasks import Task
from sylph.engine.transfer import Imported
from sylph.engine.undo.differences import FileDiff, TurnDiff
from sylph.engine.undo.ledger import Wish
from sylph.interfaces.own.line import Line


class Distant(Runtime):
    """Whatever changes or follows sessions is done by the server; what only lies in files is looked at here."""

    def __init__(self, log: Log, parts: Parts, line: Line) -> None:
        super().__init__(log, parts)
        self.line = line

    @property
    def pid(self) -> int:
        return self.line.pid

    async def back(self) -> None:
        await self.line.back()

    async def create(self, new: NewSession) -> str:
        return await self.line.call("runtime.create", new=new)

    async def send(self, session: str, command: Command) -> str:
        return await self.line.call("runtime.send", session=session, command=command)

    def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        return self.line.stream("runtime.watch", session=session, after=after)

    async def settled(self, session: str) -> None:
        await self.line.call("runtime.settled", session=session)

    async def tried(self, seconds: float | None = None, session: str = "") -> None:
        await self.line.call("runtime.tried", seconds=seconds, session=session)

    async def sessions(self, *, deleted: bool = False) -> list[Summary]:
        return await self.line.call("runtime.sessions", deleted=deleted)

    async def find(self, prefix: str) -> Summary:
        return await self.line.call("runtime.find", prefix=prefix)

    async def interrupted(self) -> list[Summary]:
        return await self.line.call("runtime.interrupted")

    async def undelivered(self) -> list[Summary]:
        return await self.line.call("runtime.undelivered")

    async def resumable(self) -> list[Summary]:
        return await self.line.call("runtime.resumable")

    async def resume_all(self, *, at_once: int = 4) -> AsyncGenerator[Resumed, None]:
        async for resumed in self.line.stream("runtime.resume_all", at_once=at_once):
            yield resumed

    async def read(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return await self.line.call("runtime.read", session=session, after=after, limit=limit)

    async def tasks(self, session: str = "") -> list[Task]:
        return await self.line.call("runtime.tasks", session=session)

    async def whole(self, session: str, call: str) -> str | None:
        return await self.line.call("runtime.whole", session=session, call=call)

    async def fork(self, session: str, *, at: int | None = None, id: str = "") -> str:
        return await self.line.call("runtime.fork", session=session, at=at, id=id)

    async def context(self, session: str) -> Context:
        return await self.line.call("runtime.context", session=session)

    async def erase(self, session: str, secret: str, why: str = "") -> int:
        return await self.line.call("runtime.erase", session=session, secret=secret, why=why)

    async def plan_undo(self, session: str, wish: Wish) -> tuple[UndoStarted, tuple[FileDiff, ...]]:
        return await self.line.call("runtime.plan_undo", session=session, wish=wish)

    async def last_undo(self, session: str) -> FilesRestored | None:
        return await self.line.call("runtime.last_undo", session=session)

    async def changes(self, session: str) -> list[TurnDiff]:
        return await self.line.call("runtime.changes", session=session)

    async def purge(self, session: str) -> None:
        await self.line.call("runtime.purge", session=session)

    def export(self, session: str) -> AsyncGenerator[bytes, None]:
        return self.line.stream("runtime.export", session=session)

    async def import_(self, lines: Iterable[bytes], *, new_id: bool = False, id: str = "") -> Imported:
        return await self.line.call("runtime.import_", lines=lines, new_id=new_id, id=id)


class DistantApp(App, kw_only=True):
    """The program whose models are called by a running server: what is asked about them, the server answers."""

    @property
    def line(self) -> Line:
        assert isinstance(self.runtime, Distant)
        return self.runtime.line

    async def choose(self, wanted: str = "") -> str:
        # What is configured here counts, also where only this environment says it.
        return await self.line.call("app.choose", wanted=wanted or self.config.settings.model)

    async def budgets(self, summary: Summary | None = None) -> list[tuple[Account, Stand]]:
        return await self.line.call("app.budgets", summary=summary)

    async def put_aside(self) -> list[Hold]:
        return await self.line.call("app.put_aside")

    async def delivered(self, session: str) -> str:  # noqa: ARG002 - the same for every program
        """Nobody has to wait: the server goes on with what is on its way."""
        return ""

    def unlock(self, model: str = "") -> None:
        """Before a turn nobody is asked: the server opens the credentials that it needs."""
        if not model:
            super().unlock()

    def chats(self, model: str) -> bool:
        try:
            return super().chats(model)
        except UserError:
            return False

    def blind(self, model: str) -> bool:
        try:
            return super().blind(model)
        except UserError:
            return False
