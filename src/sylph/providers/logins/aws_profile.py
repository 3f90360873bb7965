"""Amazon's keys, where Amazon's own programs look for them: variables, then a profile of the shared files."""

import configparser
from collections.abc import Mapping
from pathlib import Path

from sylph.core.errors import ProviderError
from sylph.providers.endpoint import TokenSource
from sylph.providers.logins.key_command import CommandTokenSource

PROCESS_SETTING = "credential_process"
EXPORT_COMMAND = "aws configure export-credentials --profile {profile} --format process"


def keys_from_environ(environ: Mapping[str, str]) -> str:
    """`access:secret` or `access:secret:token`; empty where they are not set."""
    parts = (environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY"), environ.get("AWS_SESSION_TOKEN"))
    return ":".join(filter(None, parts)) if parts[0] and parts[1] else ""


class AwsProfileTokenSource:
    """endpoint.Login: a profile of the shared files, read for every request; others may renew it at any time."""

    def __init__(self, name: str, environ: Mapping[str, str], home: Path) -> None:
        self._name, self._environ = name, environ
        self._files = (
            Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials"),
            Path(environ.get("AWS_CONFIG_FILE") or home / ".aws" / "config"),
        )
        self._command: tuple[str, TokenSource] | None = None
        self._given = ""

    async def get_token(self) -> str:
        said = self._read_profile()
        if command := said.get(PROCESS_SETTING, ""):
            return await self._command_source(command).get_token()
        access, secret = said.get("aws_access_key_id", ""), said.get("aws_secret_access_key", "")
        if not access or not secret:
            raise self._profile_error(f"the profile {self._name!r} holds no keys", said)
        self._given = ":".join(filter(None, (access, secret, said.get("aws_session_token", ""))))
        return self._given

    @property
    def last_token(self) -> str:
        return self._command[1].last_token if self._command else self._given

    async def renew_token(self, stale: str) -> str:
        command = self._read_profile().get(PROCESS_SETTING, "")
        return await (self._command_source(command).renew_token(stale) if command else self.get_token())

    def _command_source(self, command: str) -> TokenSource:
        if self._command is None or self._command[0] != command:
            self._command = (command, CommandTokenSource(command, self._environ))
        return self._command[1]

    def _read_profile(self) -> dict[str, str]:
        """What both files say of the profile; the credentials count more."""
        said: dict[str, str] = {}
        for file in self._files:
            read = configparser.RawConfigParser()
            try:
                read.read_string(file.read_text(encoding="utf-8"))
            except OSError:
                continue
            except (configparser.Error, UnicodeDecodeError) as error:
                raise self._profile_error(f"{file} cannot be read: {str(error).splitlines()[0]}", said) from None
            for section in (self._name, f"profile {self._name}"):
                said = {**(dict(read.items(section)) if read.has_section(section) else {}), **said}
        if not said:
            raise self._profile_error(
                f"there is no profile {self._name!r} in {' or '.join(map(str, self._files))}", said
            )
        return said

    def _profile_error(self, why: str, said: Mapping[str, str]) -> ProviderError:
        export = EXPORT_COMMAND.format(profile=self._name)
        steps = [f'sylph config set providers.bedrock.key_command "{export}"'] if said else []
        return ProviderError(
            "auth", f"No keys for Amazon: {why}.", next=[*steps, "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID."]
        )
