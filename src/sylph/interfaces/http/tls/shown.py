"""The certificate that is shown: loaded at the start, and again when it was replaced, without a restart."""

import hashlib
import logging
import re
import ssl
from pathlib import Path

from sylph.config import Server
from sylph.core.errors import UserError
from sylph.interfaces.http.address import own_names
from sylph.interfaces.http.tls.kept import kept

logger = logging.getLogger("sylph.http")
FILE = Path("tls", "self.pem")
BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Shown:
    """`bound` is the address listened on: a certificate of our own is made for the names it has."""

    def __init__(self, server: Server, data: Path, bound: str) -> None:
        self._own = not server.tls_cert
        self._cert = data / FILE if self._own else Path(server.tls_cert).expanduser()
        self._key = Path(server.tls_key).expanduser() if server.tls_key and not self._own else self._cert
        self._more, self._bound = server.names, bound
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        if self._own:
            kept(self._cert, self._names())
        self._since = self._load()

    @property
    def fingerprint(self) -> str:
        """As browsers show it."""
        found = BLOCK.search(self._cert.read_text(encoding="utf-8", errors="replace"))
        if not found:
            raise self._bad("it holds no certificate")
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(found.group())).hexdigest().upper()
        return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))

    def renew(self) -> None:
        """Takes up a new certificate: the file was replaced, its end is near, or the addresses changed."""
        try:
            if self._own and kept(self._cert, self._names()):
                logger.warning("The certificate was made anew; its fingerprint: %s", self.fingerprint)
            if self._changed() != self._since:
                self._since = self._load()
        except (UserError, OSError) as error:
            logger.warning("The certificate stays as it is: %s", error)

    def _names(self) -> tuple[str, ...]:
        return (*own_names(self._bound), *self._more)

    def _changed(self) -> tuple[int, int]:
        return self._cert.stat().st_mtime_ns, self._key.stat().st_mtime_ns

    def _load(self) -> tuple[int, int]:
        try:
            changed = self._changed()
            # Without a password nobody is asked for one, at whatever terminal.
            self.context.load_cert_chain(self._cert, self._key, password=lambda: "")
        except FileNotFoundError as error:
            raise self._bad(f"there is no {error.filename or self._key}") from error
        except ssl.SSLError as error:
            raise self._bad(
                f"{error.reason or error}: key and certificate must be in PEM and belong together"
            ) from error
        except (OSError, ValueError) as error:
            raise self._bad(str(error)) from error
        return changed

    def _bad(self, why: str) -> UserError:
        return UserError(
            f"The certificate {self._cert} cannot be used: {why}.",
            kind="no_tls",
            next=["sylph serve --tls self  makes one", "sylph serve --tls-cert FILE --tls-key FILE"],
        )
