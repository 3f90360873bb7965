"""Secrets from a person or a pipe, and a person's yes. Never from an argument, which other users could see."""

import getpass
import sys

from sylph.core.errors import UserError
from sylph.providers.credentials.encryption import check_passphrase

MAX_SECRET_LENGTH = 16_384


def read_api_key(title: str, where: str, *, stdin: bool) -> str:
    """A key as it is sent: one word of plain characters."""
    if not stdin and not sys.stdin.isatty():
        raise UserError(
            "There is no terminal to type the key on.", next=["give it on stdin, with --stdin", "never as an argument"]
        )
    hint = f" (get one at {where})" if where else ""
    text = sys.stdin.read(MAX_SECRET_LENGTH + 1) if stdin else getpass.getpass(f"The key of {title}{hint}, not shown: ")
    key = text.strip()
    if not key:
        raise UserError("There is no key: nothing was given.", next=["sylph connect --help"])
    if len(key) > MAX_SECRET_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
        raise UserError("That is not a key: it has to be one word of plain characters.", next=["copy it once more"])
    return key


def read_new_passphrase(*, stdin: bool) -> str:
    if stdin:
        first = again = sys.stdin.readline(MAX_SECRET_LENGTH).rstrip("\n")
    elif sys.stdin.isatty():
        first = getpass.getpass("The new passphrase (not shown): ")
        again = getpass.getpass("Once more: ")
    else:
        raise UserError("There is no terminal to type the passphrase on.", next=["give it on stdin, with --stdin"])
    if first != again:
        raise UserError("These were two different passphrases; nothing was changed.", next=["try again"])
    return check_passphrase(first)


def require_consent(terms: str, question: str, *, yes: bool) -> None:
    """Shows what is to be agreed to and waits for the yes. Raises UserError without one."""
    sys.stderr.write(f"{terms}\n")
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError("Nobody is there to agree to that.", kind="refused", next=["add --yes if you agree"])
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("Then nothing was done.", kind="refused")
