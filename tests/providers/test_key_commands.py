"""Keys that come from a command, and from Amazon's shared files."""

import asyncio
import os
from pathlib import Path

import pytest

from sylph.core.errors import ProviderError
from sylph.providers.logins.aws_profile import AwsProfileTokenSource, keys_from_environ
from sylph.providers.logins.key_command import GOOD_SECONDS, CommandTokenSource

ENVIRON = {"PATH": os.environ["PATH"]}


def counting(folder: Path) -> str:
    """A command that prints another key every time."""
    script = folder / "print-key"
    script.write_text(f'#!/bin/sh\necho x >> {folder}/runs\necho "key-$(wc -l < {folder}/runs | tr -d " ")"\n')
    script.chmod(0o700)
    return str(script)


async def test_a_key_is_asked_for_once_however_many_want_it(tmp_path: Path) -> None:
    now = [0.0]
    login = CommandTokenSource(counting(tmp_path), ENVIRON, lambda: now[0])
    assert set(await asyncio.gather(*(login.get_token() for _ in range(5)))) == {"key-1"}
    now[0] = GOOD_SECONDS
    assert await login.get_token() == "key-2"


async def test_a_key_that_was_refused_is_asked_for_anew_once(tmp_path: Path) -> None:
    login = CommandTokenSource(counting(tmp_path), ENVIRON)
    stale = await login.get_token()
    assert set(await asyncio.gather(*(login.renew_token(stale) for _ in range(3)))) == {"key-2"}
    assert await login.get_token() == "key-2"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("false", "exit 1"),
        ("sh -c 'echo not logged in >&2; exit 3'", "not logged in"),
        ("true", "it did not print a key"),
        ("echo two words", "it did not print a key"),
        ("no-such-program-at-all", "No such file"),
        ("'unclosed", "No closing quotation"),
        ("", "failed"),
    ],
)
async def test_a_command_that_gives_no_key_is_told(command: str, why: str) -> None:
    with pytest.raises(ProviderError, match="The command for the key failed") as caught:
        await CommandTokenSource(command, ENVIRON).get_token()
    assert why in str(caught.value)
    assert (caught.value.failure, caught.value.trouble.next) == ("auth", (f"Run it yourself and see: {command}",))


async def test_amazons_programs_print_a_pair() -> None:
    said = (
        '{"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": "2026-12-01"}'
    )
    assert await CommandTokenSource(f"echo '{said}'", ENVIRON).get_token() == "AKIA:s:t"


def test_variables_need_both_halves_of_the_pair() -> None:
    assert keys_from_environ({"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s"}) == "A:s"
    assert keys_from_environ({"AWS_ACCESS_KEY_ID": "A", "AWS_SESSION_TOKEN": "t"}) == ""


def profile(home: Path, name: str, credentials: str = "", config: str = "") -> AwsProfileTokenSource:
    (home / ".aws").mkdir(exist_ok=True)
    (home / ".aws" / "credentials").write_text(credentials)
    (home / ".aws" / "config").write_text(config)
    return AwsProfileTokenSource(name, ENVIRON, home)


KEYS = "aws_access_key_id = A\naws_secret_access_key = s%c\n"


async def test_a_profile_is_read_from_either_file_and_read_anew(tmp_path: Path) -> None:
    told = profile(tmp_path, "work", f"[default]\nx=1\n[work]\n{KEYS}aws_session_token = t\n")
    assert await told.get_token() == "A:s%c:t"
    (tmp_path / ".aws" / "credentials").write_text(f"[work]\n{KEYS}")
    assert await told.get_token() == await told.renew_token("A:s%c:t") == "A:s%c"
    assert await profile(tmp_path, "work", config=f"[profile work]\n{KEYS}").get_token() == "A:s%c"


async def test_a_profile_may_have_a_command(tmp_path: Path) -> None:
    command = counting(tmp_path)
    told = profile(tmp_path, "work", config=f"[profile work]\ncredential_process = {command}\n")
    assert (await told.get_token(), await told.get_token(), await told.renew_token("key-1")) == (
        "key-1",
        "key-1",
        "key-2",
    )


@pytest.mark.parametrize(
    ("credentials", "config", "why"),
    [
        ("[other]\n", "", "there is no profile 'work'"),
        ("[work]\nregion = x\n", "", "holds no keys"),
        ("", "[profile work]\nsso_session = corp\n", "holds no keys"),
        ("nonsense\n", "", "cannot be read"),
    ],
)
async def test_a_profile_without_keys_says_what_to_do(tmp_path: Path, credentials: str, config: str, why: str) -> None:
    with pytest.raises(ProviderError, match="No keys for Amazon") as caught:
        await profile(tmp_path, "work", credentials, config).get_token()
    assert why in str(caught.value)
    export = "aws configure export-credentials --profile work --format process"
    assert (export in caught.value.trouble.next[0]) == ("holds no keys" in why)
