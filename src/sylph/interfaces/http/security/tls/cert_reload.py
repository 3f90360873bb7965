"""The certificate that is shown: loaded at the start, and again when it was replaced, without a restart."""

import hashlib
import logging
import re
import ssl
from pathlib import Path

from sylph.config import ServerSettings
from sylph.core.errors import UserError
from sylph.interfaces.http.security.server_address import machine_names
from sylph.interfaces.http.security.tls.cert_file import ensure_certificate

logger = logging.getLogger("sylph.http")
FILE = Path("tls", "self.pem")
CERTIFICATE_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class ReloadingCertificate:
    """`bound` is the address listened on: a certificate of our own is made for the names it has."""

    def __init__(self, server: ServerSettings, data: Path, bound: str) -> None:
        self._own = not server.tls_cert
        self._cert = data / FILE if self._own else Path(server.tls_cert).expanduser()
        self._key = Path(server.tls_key).expanduser() if server.tls_key and not self._own else self._cert
        self._more, self._bound = server.names, bound
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        if self._own:
            ensure_certificate(self._cert, self._certificate_names())
        self._since = self._load_chain()

    @property
    def fingerprint(self) -> str:
        """As browsers show it."""
        found = CERTIFICATE_BLOCK.search(self._cert.read_text(encoding="utf-8", errors="replace"))
        if not found:
            raise self._certificate_error("it holds no certificate")
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(found.group())).hexdigest().upper()
        return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))

    def renew(self) -> None:
        """Takes up a new certificate: the file was replaced, its end is near, or the addresses changed."""
        try:
            if self._own and ensure_certificate(self._cert, self._certificate_names()):
                logger.warning("The certificate was made anew; its fingerprint: %s", self.fingerprint)
            if self._modified_times() != self._since:
                self._since = self._load_chain()
        except (UserError, OSError) as error:
            logger.warning("The certificate stays as it is: %s", error)

    def _certificate_names(self) -> tuple[str, ...]:
        return (*machine_names(self._bound), *self._more)

    def _modified_times(self) -> tuple[int, int]:
        return self._cert.stat().st_mtime_ns, self._key.stat().st_mtime_ns

    def _load_chain(self) -> tuple[int, int]:
        try:
            changed = self._modified_times()
            # Without a password nobody is asked for one, at whatever terminal.
            self.context.load_cert_chain(self._cert, self._key, password=lambda: "")
        except FileNotFoundError as error:
            raise self._certificate_error(f"there is no {error.filename or self._key}") from error
        except ssl.SSLError as error:
            raise self._certificate_error(
                f"{error.reason or error}: key and certificate must be in PEM and belong together"
            ) from error
        except (OSError, ValueError) as error:
            raise self._certificate_error(str(error)) from error
        return changed

    def _certificate_error(self, why: str) -> UserError:
        return UserError(
            f"The certificate {self._cert} cannot be used: {why}.",
            kind="no_tls",
            next=["sylph serve --tls self  makes one", "sylph serve --tls-cert FILE --tls-key FILE"],
        )
