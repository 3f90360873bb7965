"""What came of a session that was left open, after it was taken up again."""

from typing import Literal

import msgspec

from sylph.core.errors import Trouble
from sylph.core.facts import Outcome

State = Literal["ended", "delivered", "elsewhere", "open"]


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """`ended`: its turn came to an end; `delivered`: there was only something to deliver; `elsewhere`: another process
    was faster; `open`: it could not be gone on with, and `trouble` says why."""

    session: str
    state: State
    outcome: Outcome | None = None
    trouble: Trouble | None = None
    undelivered: int = 0
