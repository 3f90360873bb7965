"""What `sylph serve` tells when it takes requests: where it is, and how to come in."""

import sys

from sylph.interfaces.cli.door import put
from sylph.interfaces.http.house import House
from sylph.interfaces.http.keyring import new_link


def greet(house: House) -> None:
    address, seen = house.address, sys.stdout.isatty()
    put(f"Sylph serves at {address.url}")
    if address.fingerprint:
        put(f"SHA-256 fingerprint of its certificate: {address.fingerprint}")
    if first := not any(key.kind in ("token", "cookie") for key in house.keys.all()):
        _first(house, seen=seen)
    if address.open and seen:
        put("For a phone, once within ten minutes (compare the fingerprint when it warns of the certificate):")
        put(code_of(new_link(house, "phone", ("admin",)).url))
    if not first:
        put("To log in with a browser: sylph token link")
    sys.stdout.flush()


def _first(house: House, *, seen: bool) -> None:
    if seen:
        # Where nobody sees it, it would stay in a log; a link there is worth nothing after a while.
        _, secret = house.keys.make("token", "owner", ("admin",))
        put(f"Your key, shown this once: {secret}")
    put(f"Log in, once within ten minutes: {new_link(house, 'owner', ('admin',)).url}")
    put("Later: sylph token link")


def code_of(text: str) -> str:
    """A QR code for the terminal."""
    import io

    import segno

    shown = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(shown, compact=True)
    return shown.getvalue()
