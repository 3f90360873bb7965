"""Connecting to a service: a key that is saved, a login, or another tool's."""

import asyncio
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sylph.access import credentials_of, services_of
from sylph.config import Config
from sylph.core.clock import SystemClock
from sylph.core.errors import ProviderError, UserError
from sylph.core.text import count
from sylph.interfaces import saving
from sylph.interfaces.clean import clean
from sylph.interfaces.cli.door import Door, ask_passphrase, put
from sylph.interfaces.cli.secrets import agreed, read_key
from sylph.net.http import Client
from sylph.providers.credentials.entry import Entry, Kind
from sylph.providers.credentials.others import TOOLS, Tool, found
from sylph.providers.credentials.others import borrow as borrowed
from sylph.providers.credentials.store import Store
from sylph.providers.endpoint import Endpoint
from sylph.providers.logins import chatgpt, copilot
from sylph.providers.logins.browser import browser_login
from sylph.providers.logins.device import Code, device_login
from sylph.providers.logins.oauth import Refusal, Service
from sylph.providers.logins.tokens import Granted, Tokens, tokens_of
from sylph.providers.table import row
from sylph.wiring import proxies_of

WINDOWS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
T = TypeVar("T")


class Wish(Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    provider: str
    stdin: bool = False
    no_check: bool = False
    device: bool = False
    browser: bool = False
    no_browser: bool = False
    tool: str = ""
    yes: bool = False


def save_key(door: Door, wish: Wish, name: str) -> int:
    """Asks for a key, has the service look at it, and only then keeps it."""
    config, told = door.config, row(name)
    if others := [tool for tool in TOOLS if tool.provider == name and found(tool, config.environ)]:
        sys.stderr.write(f"sylph: {others[0].title} has a login here: sylph connect {name} --from {others[0].name}\n")
    saving.opened_by(name, "a key", config)
    _store(config).ready()
    key = read_key(told.title, told.console, stdin=wish.stdin)
    endpoint = saving.opened_by(name, key, config)
    seen = "" if wish.no_check else _checked(config, endpoint)
    kept = saving.keep_key(_store(config), endpoint, key)
    put(f"{name}: the key {kept.tail} is kept in {_where(config)}.{seen}")
    _outranked(config, name, "key")
    return 0


def borrow(door: Door, wish: Wish, name: str) -> int:
    """Remembers a yes to another tool's login; only then its file is opened."""
    config = door.config
    tool = next((each for each in TOOLS if each.name == wish.tool and each.provider == name), None)
    path = found(tool, config.environ) if tool else None
    if tool is None or path is None:
        there = [each.name for each in TOOLS if each.provider == name and found(each, config.environ)]
        raise UserError(
            f"{wish.tool!r} has no login for {name} on this machine.",
            kind="not_found",
            next=[f"sylph connect {name} --from {each}" for each in there] or ["sylph connect status"],
        )
    agreed(
        f"{tool.terms}\nSylph only reads the file and never changes it: {path}",
        f"May Sylph use this login for {name} from now on?",
        yes=wish.yes,
    )
    lent = borrowed(tool, config.environ)
    entry = Entry(provider=name, kind="borrowed", account=tool.name, headers=dict(lent.headers), base_url=lent.base_url)
    _keep(config, entry, b"")
    put(f"{name}: the login of {tool.title} is used from now on; sylph disconnect {name} takes that back.")
    _outranked(config, name, "borrowed")
    return 0


def log_in(door: Door, wish: Wish, name: str) -> int:
    """Logs in to a service, after its terms were agreed to."""
    config = door.config
    service = services_of(config)[name]
    if wish.device and wish.browser:
        raise UserError("One of --device and --browser, not both.", next=["sylph connect --help"])
    if not service.client_id:
        raise _off(service, config)
    _store(config).ready()
    agreed(service.terms, f"Log in to {service.title}?", yes=wish.yes)
    # A browser in the terminal would take the terminal away.
    windowed = sys.platform == "darwin" or any(config.environ.get(name) for name in WINDOWS)
    granted = _run(config, lambda client: _granted(service, client, wish, windowed=windowed))
    tokens, account, headers = _tokens(service, granted)
    entry = Entry(provider=name, kind="login", account=account, headers=headers, expires=tokens.expires)
    # Written before anything else is asked: a login that is had is not lost for want of the next step.
    kept = _keep(config, entry, msgspec.json.encode(tokens))
    if name == copilot.SERVICE.name:
        kept = _lent(config, service, kept, tokens)
    who = f" as {clean(kept.account)}" if kept.account else ""
    put(f"{name}: you are logged in{who}; the login is kept in {_where(config)}.")
    _outranked(config, name, "login")
    return 0


async def _granted(service: Service, client: Client, wish: Wish, *, windowed: bool) -> Granted:
    by_code = wish.device or (service.name == "copilot" and not wish.browser)
    if by_code:
        device = chatgpt.device if service.name == "chatgpt" else device_login
        return await device(service, client, _show_code)

    async def visit(url: str) -> None:
        opened = windowed and not wish.no_browser and await asyncio.to_thread(webbrowser.open, url)
        what = "The browser opens the login page. If it does not, open this link" if opened else "Open this link"
        sys.stderr.write(f"{what}:\n\n  {url}\n\nWaiting for you to log in (Ctrl-C gives up) …\n")
        sys.stderr.flush()

    return await browser_login(service, client, visit)


def _tokens(service: Service, granted: Granted) -> tuple[Tokens, str, dict[str, str]]:
    if service.name == copilot.SERVICE.name:
        return Tokens(origin=granted.access_token, refresh=granted.refresh_token or ""), "", {}
    account, headers = chatgpt.account(granted)
    return tokens_of(granted), account, headers


def _lent(config: Config, service: Service, kept: Entry, tokens: Tokens) -> Entry:
    """The first token of Copilot's own, which tells whether the account has Copilot, and where it is."""
    try:
        lent, url = _run(config, lambda client: copilot.lend(service, client, tokens.origin, SystemClock()))
    except (Refusal, ProviderError) as error:
        message = f"You are logged in to GitHub, but not to Copilot: {error}"
        raise UserError(
            message, kind="login_refused", next=["sylph connect copilot", "sylph disconnect copilot"]
        ) from error
    fresh = replace(lent, refresh=tokens.refresh)
    return _keep(config, replace(kept, base_url=url, expires=lent.expires), msgspec.json.encode(fresh))


def _checked(config: Config, endpoint: Endpoint) -> str:
    """What the service says of the key: how many models it opens."""
    models = _run(config, lambda client: saving.check(endpoint, client))
    return f" {count(models, 'model')} can be used: sylph models {endpoint.name}"


def _keep(config: Config, entry: Entry, secret: bytes) -> Entry:
    return saving.keep(_store(config), entry, secret)


def _run(config: Config, work: Callable[[Client], Awaitable[T]]) -> T:
    async def whole() -> T:
        client = Client(proxies=proxies_of(config))
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(whole())


def _store(config: Config) -> Store:
    return credentials_of(config, ask_passphrase)


def _where(config: Config) -> str:
    return _store(config).where()


def _outranked(config: Config, name: str, kind: Kind) -> None:
    """Says so where something else comes first."""
    first = _store(config).kind(name)
    if origin := config.origins.get(f"providers.{name}.api_key"):
        sys.stderr.write(f"sylph: {origin} is set too, and comes before it.\n")
    elif first != kind:
        what = "a login" if first == "login" else "another tool's login"
        sys.stderr.write(f"sylph: {what} is stored too, and comes before it: sylph disconnect {name}  forgets both.\n")


def _show_code(code: Code) -> None:
    sys.stderr.write(f"Open {clean(code.verification_uri)} on any device and type in this code:\n\n")
    sys.stderr.write(f"  {clean(code.user_code)}\n\nWaiting for you to log in (Ctrl-C gives up) …\n")
    sys.stderr.flush()


def _off(service: Service, config: Config) -> UserError:
    sys.stderr.write(f"{service.terms}\n")
    others = [tool for tool in TOOLS if tool.provider == service.name and found(tool, config.environ)]
    key = ["or use an API key: sylph connect openai"] if service.name == "chatgpt" else []
    return UserError(
        f"Logging in to {service.title} is off: it needs a client id, and Sylph brings none.",
        kind="config",
        next=[
            f"sylph config set logins.{service.name}.client_id ID  with one that you may use",
            *(f"or use the login of {tool.title}: {_from(tool)}" for tool in others),
            *key,
        ],
    )


def _from(tool: Tool) -> str:
    return f"sylph connect {tool.provider} --from {tool.name}"
