"""A login that is kept fresh: renewed once, however many tasks and processes want it, and never lost on the way."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from time import localtime, strftime

import msgspec
from msgspec.structs import replace

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError, SylphError
from sylph.providers.credentials.entry import CredentialEntry
from sylph.providers.credentials.file_lock import hold_lock_async
from sylph.providers.credentials.store import CredentialStore
from sylph.providers.logins.oauth import OAuthRefusal
from sylph.providers.logins.tokens import LoginTokens

RenewTokens = Callable[[LoginTokens], AsyncGenerator[LoginTokens, None]]
"""Gets a fresh login for an old one, in one step or several. Each is on the disk before the next is taken."""
# A server's words for a login that it will not take any more, whatever we do.
ENDED_CODES = frozenset(
    {"invalid_grant", "invalid_token", "bad_refresh_token", "refresh_token_reused", "refresh_token_expired",
     "refresh_token_invalidated", "token_revoked"}
)  # fmt: skip
# How long somebody who gives up waits for a renewal that is on its way: what it brings may come only once.
GRACE_SECONDS = 5.0
logger = logging.getLogger(__name__)


class RefreshingTokenSource:
    """An endpoint.Login over a stored one."""

    def __init__(
        self, store: CredentialStore, provider: str, renew: RenewTokens, *, clock: Clock | None = None
    ) -> None:
        self._store, self._provider, self._renew = store, provider, renew
        self._clock = clock or SystemClock()
        self._known: tuple[CredentialEntry, LoginTokens] | None = None
        self._unsaved = False
        self._one = asyncio.Lock()

    async def get_token(self) -> str:
        async with self._one:
            _, tokens = self._known or await self._load_tokens()
            if self._unsaved or not tokens.is_valid(self._now):
                tokens = await self._renew_tokens("")
            return tokens.access

    async def renew_token(self, stale: str) -> str:
        async with self._one:
            return (await self._renew_tokens(stale)).access

    @property
    def last_token(self) -> str:
        return self._known[1].access if self._known else ""

    @property
    def _now(self) -> float:
        return self._clock.now() / 1000

    async def _load_tokens(self) -> tuple[CredentialEntry, LoginTokens]:
        """What is on the disk now."""
        try:
            entry = await asyncio.to_thread(self._store.read_entry, self._provider, "login")
            secret = await asyncio.to_thread(self._store.read_secret, entry) if entry else b""
        except SylphError as error:
            raise ProviderError("auth", f"{self._provider}: {error}", next=error.trouble.next) from error
        if entry is None:
            raise self._ended_error("you are not logged in any more")
        try:
            tokens = msgspec.json.decode(secret, type=LoginTokens)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._ended_error("what is stored of the login is damaged") from None
        self._known = (entry, tokens)
        return self._known

    async def _renew_tokens(self, stale: str) -> LoginTokens:
        """A login that is good, and is not `stale`; from another process, if that was faster."""
        try:
            lock = self._store.folder.lock_path(self._provider)
            async with hold_lock_async(lock):
                entry, tokens = await self._latest_tokens()
                if tokens.access != stale and tokens.is_valid(self._now):
                    return tokens
                if entry.ended:
                    raise self._ended_error(entry.ended)
                return await _finish_renewal(self._request_renewal(entry, tokens, stale))
        except (OSError, SylphError) as error:
            if isinstance(error, ProviderError):
                raise
            if isinstance(error, SylphError):
                passing = error.trouble.kind == "busy"
                message = f"{self._provider}: {error}"
                raise ProviderError("timeout" if passing else "auth", message, next=error.trouble.next) from error
            message = f"{self._provider}: the login cannot be renewed, for nothing can be written: {error}"
            raise ProviderError("auth", message, next=["make room, or mend the folder's mode"]) from error

    async def _latest_tokens(self) -> tuple[CredentialEntry, LoginTokens]:
        if not self._unsaved or self._known is None:
            return await self._load_tokens()
        ours, tokens = self._known
        kept = await asyncio.to_thread(self._store.read_entry, self._provider, "login")
        if kept and kept.serial > ours.serial:
            # Somebody logged in again while ours could not be written.
            self._unsaved = False
            return await self._load_tokens()
        return await self._save_tokens(ours, tokens), tokens

    async def _request_renewal(self, entry: CredentialEntry, tokens: LoginTokens, stale: str) -> LoginTokens:
        # Written down before anything is asked: where nothing can be written, no token is spent.
        before = entry.renewing
        entry = await asyncio.to_thread(self._store.update_entry, replace(entry, renewing=self._now))
        try:
            async with aclosing(self._renew(tokens)) as steps:
                async for fresh in steps:
                    tokens, entry = fresh, await self._save_tokens(entry, fresh)
        except OAuthRefusal as error:
            raise await self._refusal_error(entry, error, before) from error
        except ProviderError as error:
            if not stale and error.is_retryable and tokens.is_valid(self._now, margin=0):
                logger.info("%s: the login could not be renewed yet: %s", self._provider, error)
                return tokens
            if error.status != 401:
                raise
            raise self._ended_error(str(error)) from error
        return tokens

    async def _save_tokens(self, entry: CredentialEntry, tokens: LoginTokens) -> CredentialEntry:
        """On the disk when this returns; where that is not possible, kept in mind and tried again."""
        fresh = replace(entry, expires=tokens.expires, renewing=0.0, ended="")
        secret = msgspec.json.encode(tokens)
        try:
            fresh = await asyncio.to_thread(lambda: self._store.save_entry(fresh, secret, anyhow=True))
            self._unsaved = False
        except (OSError, SylphError) as error:
            self._unsaved = True
            logger.warning("%s: the renewed login is not written yet, and must not be lost: %s", self._provider, error)
        self._known = (fresh, tokens)
        return fresh

    async def _refusal_error(self, entry: CredentialEntry, error: OAuthRefusal, cut: float) -> ProviderError:
        if error.code not in ENDED_CODES:
            return ProviderError("auth", f"{error}", next=[f"sylph connect {self._provider}", "sylph connect status"])
        why = str(error)
        if cut:
            why += f"; a renewal at {strftime('%H:%M', localtime(cut))} was cut off before its answer was kept"
        with suppress(OSError, SylphError):
            # Nothing is thrown away: it only is not tried again and again.
            noted = await asyncio.to_thread(self._store.update_entry, replace(entry, renewing=0.0, ended=why))
            self._known = None if self._known is None else (noted, self._known[1])
        return self._ended_error(why)

    def _ended_error(self, why: str) -> ProviderError:
        return ProviderError(
            "auth",
            f"The login to {self._provider} cannot be used any more: {why}.",
            next=[f"log in again: sylph connect {self._provider}"],
        )


async def _finish_renewal(renewal: Coroutine[object, object, LoginTokens]) -> LoginTokens:
    """Sees a renewal through, also for somebody who gives up on the way."""
    task = asyncio.ensure_future(renewal)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if not task.done():
            task.cancel()
        elif not task.cancelled():
            task.exception()  # Looked at, so that nobody complains of it.
        raise
