"""What `sylph serve` tells when it takes requests: where it is, and how to come in."""

import sys

from sylph.app import App
from sylph.core.errors import SylphError
from sylph.core.text import count
from sylph.interfaces.cli.door import put
from sylph.interfaces.http.house import House
from sylph.interfaces.http.keyring import new_link


def greet(house: House) -> None:
    address, seen = house.address, sys.stdout.isatty()
    put(f"Sylph serves at {address.url}")
    put(f"Sessions work in {house.workspace}, unless they name another folder. Ctrl-C ends the server.")
    if address.fingerprint:
        put(f"SHA-256 fingerprint of its certificate: {address.fingerprint}")
    if first := not any(key.kind in ("token", "cookie") for key in house.keys.all()):
        _first(house, seen=seen)
    if address.open and seen:
        put("For a phone; works once, for ten minutes (compare the fingerprint when it warns of the certificate):")
        put(code_of(new_link(house, "phone", ("admin",)).url))
    if not first:
        put("To log in with a browser: sylph token link")
    sys.stdout.flush()


async def tell_model(app: App) -> None:
    """Which model is in use. Services are asked for theirs, so this comes a little later than the rest."""
    try:
        put(f"The model is {await app.choose()}.")
    except SylphError as error:
        put(f"No model can be used yet: {error}")
        for step in error.trouble.next:
            put(f"  → {step}")
    sys.stdout.flush()


def farewell(left: int, *, resumes: bool) -> None:
    """What becomes of turns that have not ended by themselves."""
    if left:
        how = "goes on at the next start of the server, or by" if resumes else "goes on by"
        put(f"{count(left, 'session')} at work: what was not ended {how}  sylph resume --all")


def _first(house: House, *, seen: bool) -> None:
    if seen:
        # Where nobody sees it, it would stay in a log; a link there is worth nothing after a while.
        _, secret = house.keys.make("token", "owner", ("admin",))
        put(f"Your key, shown this once: {secret}")
    put(f"Open this in a browser to log in; it works once, for ten minutes: {new_link(house, 'owner', ('admin',)).url}")
    put("Another such link: sylph token link")


def code_of(text: str) -> str:
    """A QR code for the terminal."""
    import io

    import segno

    shown = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(shown, compact=True)
    return shown.getvalue()
