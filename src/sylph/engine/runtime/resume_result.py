"""What came of a session that was left open, after it was taken up again."""

from typing import Literal

import msgspec

from sylph.core.errors import ErrorReport
from sylph.core.facts.turn import TurnOutcome

ResumeState = Literal["ended", "delivered", "elsewhere", "open"]


class ResumeResult(msgspec.Struct, frozen=True, kw_only=True):
    """`ended`: its turn came to an end; `delivered`: there was only something to deliver; `elsewhere`: another process
    was faster; `open`: it could not be gone on with, and `trouble` says why."""

    session: str
    state: ResumeState
    outcome: TurnOutcome | None = None
    trouble: ErrorReport | None = None
    undelivered: int = 0
