"""Amazon's keys, where Amazon's own programs look for them: variables, then a profile of the shared files."""

import configparser
from collections.abc import Mapping
from pathlib import Path

from sylph.core.errors import ProviderError
from sylph.providers.command_key import CommandKey
from sylph.providers.endpoint import Login

PROCESS = "credential_process"
EXPORT = "aws configure export-credentials --profile {profile} --format process"


def from_variables(environ: Mapping[str, str]) -> str:
    """`access:secret` or `access:secret:token`; empty where they are not set."""
    parts = (environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY"), environ.get("AWS_SESSION_TOKEN"))
    return ":".join(filter(None, parts)) if parts[0] and parts[1] else ""


class Profile:
    """endpoint.Login: a profile of the shared files, read for every request; others may renew it at any time."""

    def __init__(self, name: str, environ: Mapping[str, str], home: Path) -> None:
        self._name, self._environ = name, environ
        self._files = (
            Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials"),
            Path(environ.get("AWS_CONFIG_FILE") or home / ".aws" / "config"),
        )
        self._command: tuple[str, Login] | None = None
        self._given = ""

    async def token(self) -> str:
        said = self._said()
        if command := said.get(PROCESS, ""):
            return await self._asked(command).token()
        access, secret = said.get("aws_access_key_id", ""), said.get("aws_secret_access_key", "")
        if not access or not secret:
            raise self._failed(f"the profile {self._name!r} holds no keys", said)
        self._given = ":".join(filter(None, (access, secret, said.get("aws_session_token", ""))))
        return self._given

    @property
    def given(self) -> str:
        return self._command[1].given if self._command else self._given

    async def renewed(self, stale: str) -> str:
        command = self._said().get(PROCESS, "")
        return await (self._asked(command).renewed(stale) if command else self.token())

    def _asked(self, command: str) -> Login:
        if self._command is None or self._command[0] != command:
            self._command = (command, CommandKey(command, self._environ))
        return self._command[1]

    def _said(self) -> dict[str, str]:
        """What both files say of the profile; the credentials count more."""
        said: dict[str, str] = {}
        for file in self._files:
            read = configparser.RawConfigParser()
            try:
                read.read_string(file.read_text(encoding="utf-8"))
            except OSError:
                continue
            except (configparser.Error, UnicodeDecodeError) as error:
                raise self._failed(f"{file} cannot be read: {str(error).splitlines()[0]}", said) from None
            for section in (self._name, f"profile {self._name}"):
                said = {**(dict(read.items(section)) if read.has_section(section) else {}), **said}
        if not said:
            raise self._failed(f"there is no profile {self._name!r} in {' or '.join(map(str, self._files))}", said)
        return said

    def _failed(self, why: str, said: Mapping[str, str]) -> ProviderError:
        export = EXPORT.format(profile=self._name)
        steps = [f'sylph config set providers.bedrock.key_command "{export}"'] if said else []
        return ProviderError(
            "auth", f"No keys for Amazon: {why}.", next=[*steps, "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID."]
        )
