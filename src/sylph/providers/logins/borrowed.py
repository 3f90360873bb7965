"""The login of another tool, used after the person said yes: read from its file, never written to it."""

import asyncio
import time
from collections.abc import Mapping

from sylph.core.errors import ProviderError
from sylph.providers.credentials.others import Lent, Tool, borrow, place


class BorrowedLogin:
    """An endpoint.Login over another tool's file, which is read again when it has changed."""

    def __init__(self, tool: Tool, environ: Mapping[str, str]) -> None:
        self._tool, self._environ = tool, environ
        self._read: tuple[int, Lent] | None = None

    async def token(self) -> str:
        lent = await asyncio.to_thread(self._now)
        if lent.expires and lent.expires < time.time():
            raise self._over("has ended")
        return lent.token

    async def renewed(self, stale: str) -> str:
        self._read = None
        token = await self.token()
        if token == stale:
            raise self._over("is not accepted")
        return token

    @property
    def given(self) -> str:
        return self._read[1].token if self._read else ""

    def _now(self) -> Lent:
        try:
            changed = place(self._tool, self._environ).stat().st_mtime_ns
        except OSError:
            changed = 0
        if self._read is None or self._read[0] != changed:
            self._read = (changed, borrow(self._tool, self._environ))
        return self._read[1]

    def _over(self, why: str) -> ProviderError:
        tool = self._tool
        return ProviderError(
            "auth",
            f"{tool.provider} uses the login of {tool.title}, which {why}.",
            next=[tool.renewed_by, f"or sylph connect {tool.provider}, with a key of your own"],
        )
