"""The login of another tool, used after the person said yes: read from its file, never written to it."""

import asyncio
import time
from collections.abc import Mapping

from sylph.core.errors import ProviderError
from sylph.providers.credentials.other_tools import BorrowedToken, ToolCredential, borrow_token, tool_file_path


class BorrowedTokenSource:
    """An endpoint.Login over another tool's file, which is read again when it has changed."""

    def __init__(self, tool: ToolCredential, environ: Mapping[str, str]) -> None:
        self._tool, self._environ = tool, environ
        self._read: tuple[int, BorrowedToken] | None = None

    async def get_token(self) -> str:
        lent = await asyncio.to_thread(self._read_current)
        if lent.expires and lent.expires < time.time():
            raise self._ended_error("has ended")
        return lent.token

    async def renew_token(self, stale: str) -> str:
        self._read = None
        token = await self.get_token()
        if token == stale:
            raise self._ended_error("is not accepted")
        return token

    @property
    def last_token(self) -> str:
        return self._read[1].token if self._read else ""

    def _read_current(self) -> BorrowedToken:
        try:
            changed = tool_file_path(self._tool, self._environ).stat().st_mtime_ns
        except OSError:
            changed = 0
        if self._read is None or self._read[0] != changed:
            self._read = (changed, borrow_token(self._tool, self._environ))
        return self._read[1]

    def _ended_error(self, why: str) -> ProviderError:
        tool = self._tool
        return ProviderError(
            "auth",
            f"{tool.provider} uses the login of {tool.title}, which {why}.",
            next=[tool.renewal_hint, f"or sylph connect {tool.provider}, with a key of your own"],
        )
