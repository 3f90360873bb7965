"""The number of a request: given back with its answer, and found again in the log."""

import re
import secrets
from contextvars import ContextVar

REQUEST_ID_HEADER = b"x-request-id"
_GOOD = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str] = ContextVar("request", default="")


def set_request_id(given: bytes) -> str:
    """The one that the client gave, if it is a good one; else a new one. It is the current one from now on."""
    found = given.decode() if _GOOD.fullmatch(given) else secrets.token_hex(8)
    _current.set(found)
    return found


def current_request_id() -> str:
    """The request that is being answered; empty outside of one."""
    return _current.get()
