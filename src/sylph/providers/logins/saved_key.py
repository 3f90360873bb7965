"""A key that was saved, as a login: read when it is first needed, and again when the service does not take it."""

import asyncio

import msgspec
from msgspec import Struct

from sylph.core.errors import ProviderError, SylphError
from sylph.providers.credentials.store import CredentialStore


class SavedKeySecret(Struct, frozen=True):
    """The secret of a saved key."""

    key: str

    def __repr__(self) -> str:
        return "SavedKeySecret()"


class SavedKeySource:
    """An endpoint.Login over a saved key."""

    def __init__(self, store: CredentialStore, provider: str) -> None:
        self._store, self._provider = store, provider
        self._key = ""
        self._one = asyncio.Lock()

    async def get_token(self) -> str:
        async with self._one:
            if not self._key:
                self._key = await asyncio.to_thread(self._read_key)
            return self._key

    async def renew_token(self, stale: str) -> str:
        """The key as it is saved now: somebody may have saved another one."""
        async with self._one:
            self._key = await asyncio.to_thread(self._read_key)
            if self._key == stale:
                raise self._key_error("it does not accept the saved key")
            return self._key

    @property
    def last_token(self) -> str:
        return self._key

    def _read_key(self) -> str:
        try:
            entry = self._store.read_entry(self._provider, "key")
            if entry is None:
                raise self._key_error("its key is not saved any more")
            return msgspec.json.decode(self._store.read_secret(entry), type=SavedKeySecret).key
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._key_error("its saved key is damaged") from None
        except SylphError as error:
            if isinstance(error, ProviderError):
                raise
            raise ProviderError("auth", f"{self._provider}: {error}", next=error.trouble.next) from error

    def _key_error(self, why: str) -> ProviderError:
        return ProviderError("auth", f"{self._provider}: {why}.", next=[f"sylph connect {self._provider}"])
