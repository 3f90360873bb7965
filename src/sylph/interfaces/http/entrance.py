"""How the server is reached: which address, with or without TLS, under which names."""

import socket

from msgspec import Struct

from sylph.app import App
from sylph.config import Server
from sylph.core.errors import UserError
from sylph.interfaces.http.access.hosts import name_of
from sylph.interfaces.http.address import Address, is_loopback, is_wildcard, outward, own_names
from sylph.interfaces.http.keys import Keys
from sylph.interfaces.http.listening import listen, resolved
from sylph.interfaces.http.systemd import inherited
from sylph.interfaces.http.tls.shown import Shown


class Entrance(Struct, frozen=True, kw_only=True):
    listening: socket.socket
    address: Address
    shown: Shown | None = None


def open_entrance(app: App, server: Server, keys: Keys, *, seen: bool, fd: int | None = None) -> Entrance:
    """Listens. Raises UserError for an address that others reach, without TLS or without a key to keep them out.

    `seen` is whether somebody sees what is printed: only then a key can be made now. With an `fd` it is decided
    already where to listen, and the same is asked of that.
    """
    given = inherited(fd) if fd is not None else None
    bound = str(given.getsockname()[0]) if given else resolved(server.host)
    secure = server.tls != "off" or bool(server.tls_cert)
    if server.tls_key and not server.tls_cert:
        raise UserError("There is a key, but no certificate.", kind="no_tls", next=["sylph serve --tls-cert FILE …"])
    if not secure and not is_loopback(bound):
        raise UserError(
            f"Others reach {server.host}, and could read along: without TLS it is not served.",
            kind="no_tls",
            next=[
                f"sylph serve --host {server.host} --tls self",
                f"sylph serve --host {server.host} --tls-cert FILE --tls-key FILE",
                "sylph serve  for this machine only",
            ],
        )
    if not is_loopback(bound) and not seen and not any(key.kind == "token" for key in keys.all()):
        raise UserError(
            "There is no key that others could come in with, and nobody here whom a new one could be shown to.",
            kind="no_key",
            next=["sylph token create NAME --scope admin", "start it in a terminal"],
        )
    shown = Shown(server, app.config.data, bound) if secure else None
    listening = given or listen(bound, server.port)
    called = own_names(bound)
    # Your own certificate is for a name, not for an address.
    named = server.names if is_wildcard(bound) or server.tls_cert else ()
    host = (*named, *called, outward())[0] if is_wildcard(bound) else (*named, bound)[0]
    public = server.url.rstrip("/")
    address = Address(
        host=host,
        port=listening.getsockname()[1],
        secure=secure,
        open=not is_loopback(bound),
        names=(bound, *called, *server.names, *([name_of(public.partition("://")[2])] if public else [])),
        public=public,
        fingerprint=shown.fingerprint if shown else "",
    )
    return Entrance(listening=listening, address=address, shown=shown)
