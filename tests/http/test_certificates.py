"""The certificate: kept while it fits, made anew when it does not, taken up without a restart."""

import json
import re
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from sylph.config import ServerSettings
from sylph.core.errors import UserError
from sylph.interfaces.http.security.tls.cert_file import ensure_certificate
from sylph.interfaces.http.security.tls.cert_reload import ReloadingCertificate


def made(folder: Path, *more: str) -> tuple[str, str]:
    folder.mkdir(exist_ok=True)
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=own"]
    subprocess.run([*words, *more, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def handshake(shown: ReloadingCertificate) -> bytes:
    """The certificate that a client gets."""
    ours, theirs = socket.socketpair()
    serving = threading.Thread(target=lambda: shown.context.wrap_socket(ours, server_side=True).close())
    serving.start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(theirs) as end:
        found = end.getpeercert(binary_form=True)
    serving.join()
    assert found
    return found


def test_it_stays_while_it_fits(tmp_path: Path) -> None:
    file = tmp_path / "tls" / "self.pem"
    assert ensure_certificate(file, ["one.example"])
    assert file.stat().st_mode & 0o077 == 0
    assert not ensure_certificate(file, ["one.example"])
    assert not ensure_certificate(file, []), "a name that went away is no reason"
    assert ensure_certificate(file, ["two.example", "192.0.2.7"])
    noted = json.loads(file.read_text().partition("\n")[0].removeprefix("# sylph "))
    assert set(noted["names"]) == {"localhost", "127.0.0.1", "::1", "two.example", "192.0.2.7"}


@pytest.mark.parametrize("spoilt", ["near its end", "cut", "empty", "no PEM", "no note"])
def test_it_is_made_anew_when_it_is_no_good(tmp_path: Path, spoilt: str) -> None:
    file = tmp_path / "self.pem"
    ensure_certificate(file, [])
    text = file.read_text()
    changed = {
        "near its end": re.sub(r'"until":\d+', '"until":1', text),
        "cut": text[:-200],
        "empty": "",
        "no PEM": text.partition("\n")[0],
        "no note": text.partition("\n")[2],
    }
    file.write_text(changed[spoilt])
    assert ensure_certificate(file, [])
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file)


def test_a_new_one_is_taken_up_without_a_restart(tmp_path: Path) -> None:
    cert, key = made(tmp_path / "own", "-nodes")
    shown = ReloadingCertificate(ServerSettings(tls_cert=cert, tls_key=key), tmp_path, "127.0.0.1")
    first = handshake(shown)
    shown.renew()
    assert handshake(shown) == first
    made(tmp_path / "own", "-nodes")
    shown.renew()
    second = handshake(shown)
    assert second != first
    Path(cert).write_text("spoilt")
    shown.renew()
    assert handshake(shown) == second, "a bad one is not taken up"


def test_our_own_is_renewed_before_its_end(tmp_path: Path) -> None:
    shown = ReloadingCertificate(ServerSettings(tls="self"), tmp_path, "127.0.0.1")
    first, file = handshake(shown), tmp_path / "tls" / "self.pem"
    file.write_text(re.sub(r'"until":\d+', '"until":1', file.read_text()))
    shown.renew()
    assert handshake(shown) != first


def test_one_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    cert, key = made(tmp_path / "one", "-nodes")
    _, other = made(tmp_path / "two", "-nodes")
    sealed, locked = made(tmp_path / "sealed", "-passout", "pass:secret")
    nothing = str(tmp_path / "none.pem")
    wrong = [
        (cert, other),
        (cert, ""),
        (nothing, ""),
        (cert, nothing),
        (sealed, locked),
        (key, key),
        (str(tmp_path), ""),
    ]
    for one, two in wrong:
        with pytest.raises(UserError, match="cannot be used") as caught:
            ReloadingCertificate(ServerSettings(tls_cert=one, tls_key=two), tmp_path, "127.0.0.1")
        assert caught.value.trouble.next
