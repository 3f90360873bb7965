"""The runtime of a running server, with the face of one's own."""

from collections.abc import AsyncGenerator, Iterable

from sylph.app import App
from sylph.core.commands import Command
from sylph.core.errors import UserError
from sylph.core.events import Event
from sylph.core.facts.file_change import FilesRestored, UndoStarted
from sylph.engine.budget.accounts import BudgetAccount
from sylph.engine.budget.ledger_store import AccountBalance, Reservation
from sylph.engine.folds.session_state import SessionState
from sylph.engine.folds.tasks import TurnTask
from sylph.engine.log.export import ImportResult
from sylph.engine.log.store import EventLog
from sylph.engine.runtime.resume_result import ResumeResult
from sylph.engine.runtime.runtime import NewSession, Runtime, RuntimeParts
from sylph.engine.turn.context_usage import ContextUsage
from sylph.engine.undo.change_history import UndoRequest
from sylph.engine.undo.turn_diff import FileDiff, TurnDiff
from sylph.interfaces.local_socket.client import SocketClient


class RemoteRuntime(Runtime):
    """Whatever changes or follows sessions is done by the server; what only lies in files is looked at here."""

    def __init__(self, log: EventLog, parts: RuntimeParts, line: SocketClient) -> None:
        super().__init__(log, parts)
        self.line = line

    @property
    def pid(self) -> int:
        return self.line.pid

    async def wait_for_server(self) -> None:
        await self.line.wait_for_server()

    async def create_session(self, new: NewSession) -> str:
        return await self.line.call("runtime.create_session", new=new)

    async def send(self, session: str, command: Command) -> str:
        return await self.line.call("runtime.send", session=session, command=command)

    def watch(self, session: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        return self.line.stream("runtime.watch", session=session, after=after)

    async def wait_until_idle(self, session: str) -> None:
        await self.line.call("runtime.wait_until_idle", session=session)

    async def wait_for_deliveries(self, seconds: float | None = None, session: str = "") -> None:
        await self.line.call("runtime.wait_for_deliveries", seconds=seconds, session=session)

    async def list_sessions(self, *, deleted: bool = False) -> list[SessionState]:
        return await self.line.call("runtime.list_sessions", deleted=deleted)

    async def find_session(self, prefix: str) -> SessionState:
        return await self.line.call("runtime.find_session", prefix=prefix)

    async def list_interrupted(self) -> list[SessionState]:
        return await self.line.call("runtime.list_interrupted")

    async def list_undelivered(self) -> list[SessionState]:
        return await self.line.call("runtime.list_undelivered")

    async def list_resumable(self) -> list[SessionState]:
        return await self.line.call("runtime.list_resumable")

    async def resume_all(self, *, at_once: int = 4) -> AsyncGenerator[ResumeResult, None]:
        async for resumed in self.line.stream("runtime.resume_all", at_once=at_once):
            yield resumed

    async def read_events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return await self.line.call("runtime.read_events", session=session, after=after, limit=limit)

    async def list_tasks(self, session: str = "") -> list[TurnTask]:
        return await self.line.call("runtime.list_tasks", session=session)

    async def full_output(self, session: str, call: str) -> str | None:
        return await self.line.call("runtime.full_output", session=session, call=call)

    async def fork_session(self, session: str, *, at: int | None = None, id: str = "") -> str:
        return await self.line.call("runtime.fork_session", session=session, at=at, id=id)

    async def context_usage(self, session: str) -> ContextUsage:
        return await self.line.call("runtime.context_usage", session=session)

    async def erase_secret(self, session: str, secret: str, why: str = "") -> int:
        return await self.line.call("runtime.erase_secret", session=session, secret=secret, why=why)

    async def plan_undo(self, session: str, wish: UndoRequest) -> tuple[UndoStarted, tuple[FileDiff, ...]]:
        return await self.line.call("runtime.plan_undo", session=session, wish=wish)

    async def last_undo(self, session: str) -> FilesRestored | None:
        return await self.line.call("runtime.last_undo", session=session)

    async def list_changes(self, session: str) -> list[TurnDiff]:
        return await self.line.call("runtime.list_changes", session=session)

    async def purge_session(self, session: str) -> None:
        await self.line.call("runtime.purge_session", session=session)

    def export_session(self, session: str) -> AsyncGenerator[bytes, None]:
        return self.line.stream("runtime.export_session", session=session)

    async def import_session(self, lines: Iterable[bytes], *, new_id: bool = False, id: str = "") -> ImportResult:
        return await self.line.call("runtime.import_session", lines=lines, new_id=new_id, id=id)


class RemoteApp(App, kw_only=True):
    """The program whose models are called by a running server: what is asked about them, the server answers."""

    @property
    def line(self) -> SocketClient:
        assert isinstance(self.runtime, RemoteRuntime)
        return self.runtime.line

    async def choose_model(self, wanted: str = "") -> str:
        # What is configured here counts, also where only this environment says it.
        return await self.line.call("app.choose_model", wanted=wanted or self.config.settings.model)

    async def budget_balances(self, summary: SessionState | None = None) -> list[tuple[BudgetAccount, AccountBalance]]:
        return await self.line.call("app.budget_balances", summary=summary)

    async def open_reservations(self) -> list[Reservation]:
        return await self.line.call("app.open_reservations")

    async def await_deliveries(self, session: str) -> str:  # noqa: ARG002 - the same for every program
        """Nobody has to wait: the server goes on with what is on its way."""
        return ""

    def unlock_credentials(self, model: str = "") -> None:
        """Before a turn nobody is asked: the server opens the credentials that it needs."""
        if not model:
            super().unlock_credentials()

    def is_chat_only(self, model: str) -> bool:
        try:
            return super().is_chat_only(model)
        except UserError:
            return False

    def lacks_vision(self, model: str) -> bool:
        try:
            return super().lacks_vision(model)
        except UserError:
            return False
