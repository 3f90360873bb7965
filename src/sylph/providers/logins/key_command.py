"""A key that a command of the user prints: for tokens that do not last."""

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping

import msgspec

from sylph.core.errors import ProviderError
from sylph.core.text.formatting import first_line

# Tokens last for minutes at least. One that ends earlier is asked for anew when it is refused.
GOOD_SECONDS = 300.0
TIMEOUT_SECONDS = 60.0
MAX_KEY_LENGTH = 16_384


class _CredentialProcessOutput(msgspec.Struct):
    """What Amazon's `credential_process` prints."""

    AccessKeyId: str
    SecretAccessKey: str
    SessionToken: str = ""


class CommandTokenSource:
    """endpoint.Login: runs `command` when a key is needed, one at a time, and keeps what it prints for a while."""

    def __init__(self, command: str, environ: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._command, self._environ, self._clock = command, environ, clock
        self._key, self._until = "", 0.0
        self._alone = asyncio.Lock()

    async def get_token(self) -> str:
        async with self._alone:
            return self._key if self._clock() < self._until else await self._refresh_key()

    async def renew_token(self, stale: str) -> str:
        async with self._alone:
            return self._key if self._key != stale and self._clock() < self._until else await self._refresh_key()

    @property
    def last_token(self) -> str:
        return self._key

    async def _refresh_key(self) -> str:
        self._key = ""
        said = await self._run_command()
        if not said or len(said) > MAX_KEY_LENGTH or (said[0] != "{" and len(said.split()) != 1):
            raise self._command_error("it did not print a key")
        self._key, self._until = _normalize_key(said), self._clock() + GOOD_SECONDS
        return self._key

    async def _run_command(self) -> str:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *shlex.split(self._command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                env=dict(self._environ),
            )
        except (OSError, ValueError, TypeError) as error:
            raise self._command_error(str(error)) from None
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            raise self._command_error(f"it took longer than {TIMEOUT_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._command_error(first_line(err.decode("utf-8", "replace"), 300) or f"exit {process.returncode}")
        return out.decode("utf-8", "replace").strip()

    def _command_error(self, why: str) -> ProviderError:
        return ProviderError(
            "auth", f"The command for the key failed: {why}", next=[f"Run it yourself and see: {self._command}"]
        )


def _normalize_key(said: str) -> str:
    """A token as it is; a pair of keys in one line."""
    try:
        made = msgspec.json.decode(said, type=_CredentialProcessOutput)
    except msgspec.DecodeError:
        return said
    return ":".join(filter(None, (made.AccessKeyId, made.SecretAccessKey, made.SessionToken)))
