"""Where the certificate of our own making is kept: one file, which also says for whom and how long it is good."""

import os
import ssl
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import UserError
from sylph.interfaces.http.security.tls.self_signed import VALID_DAYS, make_certificate

DAY = 86_400
# So many days before its end it is made anew.
RENEW_DAYS = 30
NOTE_PREFIX = "# sylph "
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class CertificateNote(Struct, frozen=True):
    names: tuple[str, ...]
    until: int


def ensure_certificate(file: Path, names: Sequence[str]) -> bool:
    """Sees to a certificate that is good for these names for a while yet; whether a new one was made."""
    wanted = tuple(dict.fromkeys((*LOCAL_NAMES, *names)))
    noted = _read_note(file)
    if (
        noted
        and set(wanted) <= set(noted.names)
        and noted.until - time.time() > RENEW_DAYS * DAY
        and _is_loadable(file)
    ):
        return False
    note = msgspec.json.encode(CertificateNote(wanted, int(time.time()) + VALID_DAYS * DAY)).decode()
    _write_private(file, f"{NOTE_PREFIX}{note}\n{make_certificate(wanted)}")
    return True


def _read_note(file: Path) -> CertificateNote | None:
    try:
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        return msgspec.json.decode(first.removeprefix(NOTE_PREFIX), type=CertificateNote)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return None


def _is_loadable(file: Path) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)
    except (OSError, ssl.SSLError):
        return False
    return True


def _write_private(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(text)
        fresh.replace(file)
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}.", kind="failed") from error
