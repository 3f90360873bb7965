"""What `sylph serve` tells when it takes requests: where it is, and how to come in."""

import sys

from sylph.app import App
from sylph.core.errors import SylphError
from sylph.core.text.formatting import count_noun
from sylph.interfaces.cli.kit.cli_context import print_text
from sylph.interfaces.http.login.token_routes import make_login_link
from sylph.interfaces.http.state.server_state import ServerState


def print_greeting(state: ServerState) -> None:
    address, seen = state.address, sys.stdout.isatty()
    print_text(f"Sylph serves at {address.url}")
    print_text(f"Sessions work in {state.workspace}, unless they name another folder. Ctrl-C ends the server.")
    if address.fingerprint:
        print_text(f"SHA-256 fingerprint of its certificate: {address.fingerprint}")
    if first := not any(key.kind in ("token", "cookie") for key in state.token_store.list_tokens()):
        _print_first_login(state, seen=seen)
    if address.exposed and seen:
        print_text(
            "For a phone; works once, for ten minutes (compare the fingerprint when it warns of the certificate):"
        )
        print_text(qr_code(make_login_link(state, "phone", ("admin",)).url))
    if not first:
        print_text("To log in with a browser: sylph token link")
    sys.stdout.flush()


async def print_model(app: App) -> None:
    """Which model is in use. Services are asked for theirs, so this comes a little later than the rest."""
    try:
        print_text(f"The model is {await app.choose_model()}.")
    except SylphError as error:
        print_text(f"No model can be used yet: {error}")
        for step in error.trouble.next:
            print_text(f"  → {step}")
    sys.stdout.flush()


def print_farewell(left: int, *, resumes: bool) -> None:
    """What becomes of turns that have not ended by themselves."""
    if left:
        how = "goes on at the next start of the server, or by" if resumes else "goes on by"
        print_text(f"{count_noun(left, 'session')} at work: what was not ended {how}  sylph resume --all")


def _print_first_login(state: ServerState, *, seen: bool) -> None:
    if seen:
        # Where nobody sees it, it would stay in a log; a link there is worth nothing after a while.
        _, secret = state.token_store.create_token("token", "owner", ("admin",))
        print_text(f"Your key, shown this once: {secret}")
    print_text(
        f"Open this in a browser to log in; it works once, for ten minutes: "
        f"{make_login_link(state, 'owner', ('admin',)).url}"
    )
    print_text("Another such link: sylph token link")


def qr_code(text: str) -> str:
    """A QR code for the terminal."""
    import io

    import segno

    shown = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(shown, compact=True)
    return shown.getvalue()
