"""What may be set for a remote: nothing that git or ssh would take for an option, a program or a password."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from sylph.core.errors import ToolError, UserError
from sylph.tools.git import argument_checks
from sylph.tools.git.remote.settings import GitRemote

LINES, LINE = 100, 4000
HOST = re.compile(r"(@cert-authority |@revoked )?[^\s@#][^\s]* [a-z0-9@.-]{4,60} [A-Za-z0-9+/=]{16,}( [^\r\n]*)?")
PERSON = re.compile(r"[^\x00-\x1f\x7f<>]{0,200}")
SSH_URL = re.compile(r"ssh://(?:[A-Za-z0-9_][\w.-]*@)?[^\s/@]+/\S+")
CREDENTIAL = re.compile(r"[^/@]+@")


def validate_remote(remote: GitRemote) -> GitRemote:
    """The same, if git can be given it as it is. Raises UserError."""
    try:
        argument_checks.check_remote(remote.name)
        if remote.branch:
            argument_checks.check_name(remote.branch)
    except ToolError as error:
        raise UserError(str(error), kind=error.trouble.kind, next=["use letters, digits, - and /"]) from error
    if remote.url:
        check_url(remote.url)
    for value in (remote.user, remote.email):
        if not PERSON.fullmatch(value):
            raise UserError(f"{value!r} cannot be in a commit.", kind="bad_identity", next=["give a name, an address"])
    check_hosts(remote.known_hosts)
    return remote


def check_url(url: str) -> None:
    """Raises UserError for what is no https or ssh address, or holds a password."""
    if not argument_checks.host_of(url) or url.startswith("git://") or len(url) > 2000 or "::" in url.partition("/")[0]:
        raise UserError(
            f"{CREDENTIAL.sub('…@', url)!r} is no address of a remote.",
            kind="bad_url",
            next=["use https://host/path, ssh://user@host/path or user@host:path"],
        )
    if "://" in url:
        parts = urlsplit(url)
        if parts.password is not None or (parts.scheme == "https" and parts.username):
            raise UserError(
                "A password or a token does not belong into an address.",
                kind="secret_in_url",
                next=["give the address without it", "use an SSH key, or git's own credential helper"],
            )
        if parts.scheme == "ssh" and not SSH_URL.fullmatch(url):
            raise UserError("That is no address by ssh.", kind="bad_url", next=["use ssh://user@host/path"])


def check_hosts(lines: Iterable[str]) -> None:
    for number, line in enumerate(lines, 1):
        if number > LINES or len(line) > LINE or not HOST.fullmatch(line):
            raise UserError(
                f"Line {number} of the known hosts is none.",
                kind="bad_known_host",
                next=["give lines as ssh-keyscan prints them: HOST TYPE KEY"],
            )
