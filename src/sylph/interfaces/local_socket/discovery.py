"""Finds the server of this home, if one runs, and says what it does not know."""

import hashlib
import os
import sys
from collections.abc import Mapping

from sylph import __version__
from sylph.app import build_app
from sylph.compose.credentials import PassphrasePrompt
from sylph.compose.engine import log_path
from sylph.config import Config
from sylph.engine.log.readonly_log import ReadOnlyLog
from sylph.interfaces.local_socket.client import SocketClient
from sylph.interfaces.local_socket.protocol import ClientGreeting, ServerGreeting
from sylph.interfaces.local_socket.remote_runtime import RemoteApp, RemoteRuntime
from sylph.interfaces.local_socket.unix_socket import SOCKET_NAME

# These are this process's own affair, whoever runs the turns.
OWN_VARIABLES = frozenset({"SYLPH_MODEL", "SYLPH_LOG_LEVEL"})
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


async def open_server_app(config: Config, ask: PassphrasePrompt, *, looks: bool = False) -> RemoteApp | None:
    """The program of the server that runs; None where there is none to work with. What only looks is not warned."""
    line = SocketClient(config.data / SOCKET_NAME)
    hello = await line.greet(make_greeting(config))
    if hello is None:
        return None
    if hello.version != __version__:
        _print_warning(
            f"a server of version {hello.version} runs here (process {hello.pid}), and this is {__version__}: working "
            "beside it. To work through it: sylph serve --stop, then sylph serve"
        )
        return None
    if not looks:
        _warn_differences(hello)
    app = build_app(config, ask, lambda parts: RemoteRuntime(ReadOnlyLog(log_path(config)), parts, line), RemoteApp)
    assert isinstance(app, RemoteApp)
    return app


def make_greeting(config: Config) -> ClientGreeting:
    """What a server must know to do the same as this process would: as digests, for it needs no more."""
    salt, environ = os.urandom(16), config.environ
    names = ({*config.origins.values()} & set(environ)) - OWN_VARIABLES | {
        name for name in PROXY_VARIABLES if environ.get(name)
    }
    return ClientGreeting(
        version=__version__, salt=salt, environ={name: digest_variable(environ[name], salt) for name in names}
    )


def differing_variables(greeting: ClientGreeting, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that are set where somebody asks, and not, or otherwise, here."""
    told = greeting.environ.items()
    return tuple(sorted(name for name, said in told if digest_variable(environ.get(name, ""), greeting.salt) != said))


def digest_variable(value: str, salt: bytes) -> bytes:
    return hashlib.blake2b(value.encode("utf-8", "surrogateescape"), digest_size=16, salt=salt).digest()


def _warn_differences(hello: ServerGreeting) -> None:
    if hello.differs:
        names = ", ".join(hello.differs)
        _print_warning(
            f"the server (process {hello.pid}) does not have your {names}, and uses its own. "
            "To change that: start it again with it, or work beside it with --alone"
        )
    if hello.pending:
        _print_warning(
            f"the server goes by the new {', '.join(hello.pending)} from its next start on: sylph serve --stop"
        )


def _print_warning(text: str) -> None:
    sys.stderr.write(f"sylph: {text}\n")
