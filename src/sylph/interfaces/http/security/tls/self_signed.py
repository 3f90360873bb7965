"""A certificate of our own making: with `cryptography` where it is installed, else by the program `openssl`."""

import datetime
import ipaddress
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sylph.core.errors import UserError

# Phones take none that is good for longer.
VALID_DAYS = 397
COMMON_NAME = "Sylph"


def make_certificate(names: Sequence[str]) -> str:
    """A new private key and its certificate for these names and addresses, in PEM."""
    try:
        return _make_with_cryptography(names)
    except ImportError:
        return _make_with_openssl(names)


def is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _make_with_cryptography(names: Sequence[str]) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME)])
    known = [
        x509.IPAddress(ipaddress.ip_address(name)) if is_ip_address(name) else x509.DNSName(name) for name in names
    ]
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # The clock of a phone may be a little behind.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (private + certificate.public_bytes(serialization.Encoding.PEM)).decode()


def _make_with_openssl(names: Sequence[str]) -> str:
    known = ",".join(f"{'IP' if is_ip_address(name) else 'DNS'}:{name}" for name in names)
    extensions = (f"subjectAltName={known}", "basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth")
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder, "key.pem"), Path(folder, "cert.pem")
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        words += [
            "-sha256",
            "-days",
            str(VALID_DAYS),
            "-subj",
            f"/CN={COMMON_NAME}",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ]
        for each in extensions:
            words += ["-addext", each]
        try:
            subprocess.run(words, check=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            raise UserError(
                "A certificate is made by the Python package `cryptography` or the program `openssl`: here is neither.",
                kind="no_tls",
                details={"openssl": error},
                next=["pip install 'sylph[tls]'", "or install openssl", "or give your own: --tls-cert, --tls-key"],
            ) from error
        return key.read_text() + certificate.read_text()
