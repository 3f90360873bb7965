"""The sessions a process holds open: those at work, and the few that rested last."""

from collections.abc import Callable, Iterator

from sylph.core.errors import NotFound
from sylph.engine.log.store import EventLog
from sylph.engine.turn.session import Session

# So many that rest are kept, as somebody may go on with them; all they know is in the log.
MAX_RESTING = 16


class OpenSessions:
    def __init__(self, log: EventLog, make: Callable[[str], Session]) -> None:
        self._log, self._make = log, make
        self._sessions: dict[str, Session] = {}

    def open(self, session: str) -> Session:
        known = self._sessions.pop(session, None)
        if known and (known.busy or known.context.is_current):
            self._sessions[session] = known
            return known
        if not self._log.head(session).seq:
            raise NotFound(f"There is no session {session!r}.", next=["`sylph session list` shows all of them."])
        if known:
            known.outbox.cancel()
        opened = self._sessions[session] = self._make(session)
        self._evict_idle(session)
        return opened

    def get(self, session: str) -> Session | None:
        return self._sessions.get(session)

    def forget(self, session: str) -> None:
        self._sessions.pop(session, None)

    def __iter__(self) -> Iterator[tuple[str, Session]]:
        return iter(list(self._sessions.items()))

    def _evict_idle(self, besides: str) -> None:
        """Of those that rest, the ones that nobody has used for longest."""
        resting = [id for id, each in self._sessions.items() if id != besides and each.can_evict]
        for id in resting[: max(len(resting) - MAX_RESTING, 0)]:
            del self._sessions[id]
            self._log.forget_session(id)
