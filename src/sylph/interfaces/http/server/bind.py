"""How the server is reached: which address, with or without TLS, under which names."""

import socket

from msgspec import Struct

from sylph.app import App
from sylph.config import ServerSettings
from sylph.core.errors import UserError
from sylph.interfaces.http.security.checks.allowed_hosts import host_name
from sylph.interfaces.http.security.server_address import (
    ServerAddress,
    is_loopback,
    is_wildcard,
    machine_names,
    outward_address,
)
from sylph.interfaces.http.security.tls.cert_reload import ReloadingCertificate
from sylph.interfaces.http.security.token_store import ServerTokenStore
from sylph.interfaces.http.server.listen_socket import listen_tcp, resolve_host
from sylph.interfaces.http.server.systemd import adopt_socket


class ServerBinding(Struct, frozen=True, kw_only=True):
    listening: socket.socket
    address: ServerAddress
    certificate: ReloadingCertificate | None = None


def bind_server(
    app: App, server: ServerSettings, keys: ServerTokenStore, *, seen: bool, fd: int | None = None
) -> ServerBinding:
    """Listens. Raises UserError for an address that others reach, without TLS or without a key to keep them out.

    `seen` is whether somebody sees what is printed: only then a key can be made now. With an `fd` it is decided
    already where to listen, and the same is asked of that.
    """
    given = adopt_socket(fd) if fd is not None else None
    bound = str(given.getsockname()[0]) if given else resolve_host(server.host)
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
    if not is_loopback(bound) and not seen and not any(key.kind == "token" for key in keys.list_tokens()):
        raise UserError(
            "There is no key that others could come in with, and nobody here whom a new one could be shown to.",
            kind="no_key",
            next=["sylph token create NAME --scope admin", "start it in a terminal"],
        )
    shown = ReloadingCertificate(server, app.config.data, bound) if secure else None
    listening = given or listen_tcp(bound, server.port)
    called = machine_names(bound)
    # Your own certificate is for a name, not for an address.
    named = server.names if is_wildcard(bound) or server.tls_cert else ()
    host = (*named, *called, outward_address())[0] if is_wildcard(bound) else (*named, bound)[0]
    public = server.url.rstrip("/")
    address = ServerAddress(
        host=host,
        port=listening.getsockname()[1],
        secure=secure,
        exposed=not is_loopback(bound),
        names=(bound, *called, *server.names, *([host_name(public.partition("://")[2])] if public else [])),
        proxy_url=public,
        fingerprint=shown.fingerprint if shown else "",
    )
    return ServerBinding(listening=listening, address=address, certificate=shown)
