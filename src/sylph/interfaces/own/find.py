"""Finds the server of this home, if one runs, and says what it does not know."""

import hashlib
import os
import sys
from collections.abc import Mapping

from sylph import __version__
from sylph.access import Ask
from sylph.app import build
from sylph.config import Config
from sylph.engine.glance import Glance
from sylph.interfaces.own.calls import Greeting, Hello
from sylph.interfaces.own.distant import Distant, DistantApp
from sylph.interfaces.own.line import Line
from sylph.interfaces.own.place import SOCKET
from sylph.wiring import store_of

# These are this process's own affair, whoever runs the turns.
OURS = frozenset({"SYLPH_MODEL", "SYLPH_LOG_LEVEL"})
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


async def distant(config: Config, ask: Ask, *, looks: bool = False) -> DistantApp | None:
    """The program of the server that runs; None where there is none to work with. What only looks is not warned."""
    line = Line(config.data / SOCKET)
    hello = await line.greet(greeting(config))
    if hello is None:
        return None
    if hello.version != __version__:
        _say(
            f"a server of version {hello.version} runs here (process {hello.pid}), and this is {__version__}: working "
            "beside it. To work through it: sylph serve --stop, then sylph serve"
        )
        return None
    if not looks:
        _complain(hello)
    app = build(config, ask, lambda parts: Distant(Glance(store_of(config)), parts, line), DistantApp)
    assert isinstance(app, DistantApp)
    return app


def greeting(config: Config) -> Greeting:
    """What a server must know to do the same as this process would: as digests, for it needs no more."""
    salt, environ = os.urandom(16), config.environ
    names = ({*config.origins.values()} & set(environ)) - OURS | {name for name in PROXIES if environ.get(name)}
    return Greeting(version=__version__, salt=salt, environ={name: digest(environ[name], salt) for name in names})


def differing(greeting: Greeting, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that are set where somebody asks, and not, or otherwise, here."""
    told = greeting.environ.items()
    return tuple(sorted(name for name, said in told if digest(environ.get(name, ""), greeting.salt) != said))


def digest(value: str, salt: bytes) -> bytes:
    return hashlib.blake2b(value.encode("utf-8", "surrogateescape"), digest_size=16, salt=salt).digest()


def _complain(hello: Hello) -> None:
    if hello.differs:
        names = ", ".join(hello.differs)
        _say(
            f"the server (process {hello.pid}) does not have your {names}, and uses its own. "
            "To change that: start it again with it, or work beside it with --alone"
        )
    if hello.pending:
        _say(f"the server goes by the new {', '.join(hello.pending)} from its next start on: sylph serve --stop")


def _say(text: str) -> None:
    sys.stderr.write(f"sylph: {text}\n")
