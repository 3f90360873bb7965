"""Whether something can be done with a session as it stands, and in which words not."""

from sylph.core.errors import UserError
from sylph.engine.folds.session_state import SessionState


def require_usable(summary: SessionState, id: str) -> None:
    if not summary.id:
        raise UserError(
            "The first fact of the session, which says where and how it works, cannot be read.",
            kind="session_damaged",
            next=["Bring the session in again from an export or a backup.", "`sylph session export` saves the rest."],
        )
    if summary.deleted:
        restore = f"`sylph session restore {id}` brings it back."
        raise UserError("The session is in the trash.", kind="deleted", next=[restore])


def require_idle(summary: SessionState, id: str, what: str, *, busy: bool) -> None:
    require_usable(summary, id)
    if busy or summary.open_turn:
        raise UserError(
            f"A session cannot be {what} while a turn is open.",
            kind="wrong_state",
            next=["Wait for the turn or stop it.", f"`sylph resume {id}` finishes an interrupted one."],
        )
