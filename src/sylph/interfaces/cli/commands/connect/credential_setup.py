"""Connecting to a service: a key that is saved, a login, or another tool's."""

import asyncio
import signal
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sylph.compose.credentials import login_services, open_credential_store
from sylph.compose.engine import build_proxies
from sylph.config import Config
from sylph.core.clock import SystemClock
from sylph.core.errors import ProviderError, UserError
from sylph.core.text.formatting import count_noun
from sylph.interfaces.actions import credential_storage
from sylph.interfaces.cli.kit.cli_context import CliContext, ask_passphrase, print_text
from sylph.interfaces.cli.kit.secret_prompt import read_api_key, require_consent
from sylph.interfaces.text.sanitize import sanitize_text
from sylph.net.http_client import HttpClient
from sylph.providers.credentials.entry import CredentialEntry, StoredCredentialKind
from sylph.providers.credentials.other_tools import TOOL_CREDENTIALS, ToolCredential, find_tool_file
from sylph.providers.credentials.other_tools import borrow_token as borrowed
from sylph.providers.credentials.store import CredentialStore
from sylph.providers.endpoint import Endpoint
from sylph.providers.logins import chatgpt, copilot
from sylph.providers.logins.browser_login import browser_login
from sylph.providers.logins.device_code import DeviceCode, device_login
from sylph.providers.logins.oauth import OAuthRefusal, OAuthService
from sylph.providers.logins.tokens import LoginTokens, OAuthTokenResponse, tokens_from_response
from sylph.providers.vendors.table import find_vendor

DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
T = TypeVar("T")


class ConnectRequest(Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    provider: str
    stdin: bool = False
    no_check: bool = False
    device: bool = False
    browser: bool = False
    no_browser: bool = False
    tool: str = ""
    yes: bool = False


def save_key(cli: CliContext, wish: ConnectRequest, name: str) -> int:
    """Asks for a key, has the service look at it, and only then keeps it."""
    config, told = cli.config, find_vendor(name)
    if others := [tool for tool in TOOL_CREDENTIALS if tool.provider == name and find_tool_file(tool, config.environ)]:
        sys.stderr.write(f"sylph: {others[0].title} has a login here: sylph connect {name} --from {others[0].name}\n")
    credential_storage.endpoint_for_key(name, "a key", config)
    _credential_store(config).check_ready()
    key = read_api_key(told.title, told.console, stdin=wish.stdin)
    endpoint = credential_storage.endpoint_for_key(name, key, config)
    seen = "" if wish.no_check else _check_key(config, endpoint)
    kept = credential_storage.save_key(_credential_store(config), endpoint, key)
    print_text(f"{name}: the key {kept.tail} is kept in {_storage_place(config)}.{seen}")
    _warn_outranked(config, name, "key")
    return 0


def borrow_login(cli: CliContext, wish: ConnectRequest, name: str) -> int:
    """Remembers a yes to another tool's login; only then its file is opened."""
    config = cli.config
    tool = next((each for each in TOOL_CREDENTIALS if each.name == wish.tool and each.provider == name), None)
    path = find_tool_file(tool, config.environ) if tool else None
    if tool is None or path is None:
        there = [
            each.name for each in TOOL_CREDENTIALS if each.provider == name and find_tool_file(each, config.environ)
        ]
        raise UserError(
            f"{wish.tool!r} has no login for {name} on this machine.",
            kind="not_found",
            next=[f"sylph connect {name} --from {each}" for each in there] or ["sylph connect status"],
        )
    require_consent(
        f"{tool.terms}\nSylph only reads the file and never changes it: {path}",
        f"May Sylph use this login for {name} from now on?",
        yes=wish.yes,
    )
    lent = borrowed(tool, config.environ)
    entry = CredentialEntry(
        provider=name, kind="borrowed", account=tool.name, headers=dict(lent.headers), base_url=lent.base_url
    )
    _save_credential(config, entry, b"")
    print_text(f"{name}: the login of {tool.title} is used from now on; sylph disconnect {name} takes that back.")
    _warn_outranked(config, name, "borrowed")
    return 0


def log_in(cli: CliContext, wish: ConnectRequest, name: str) -> int:
    """Logs in to a service, after its terms were agreed to."""
    config = cli.config
    service = login_services(config)[name]
    if wish.device and wish.browser:
        raise UserError("One of --device and --browser, not both.", next=["sylph connect --help"])
    if not service.client_id:
        raise _login_off_error(service, config)
    _credential_store(config).check_ready()
    require_consent(service.terms, f"Log in to {service.title}?", yes=wish.yes)
    # A browser in the terminal would take the terminal away.
    windowed = sys.platform == "darwin" or any(config.environ.get(name) for name in DISPLAY_VARIABLES)
    granted = _run_with_client(config, lambda client: _authorize_login(service, client, wish, windowed=windowed))
    tokens, account, headers = _token_details(service, granted)
    entry = CredentialEntry(provider=name, kind="login", account=account, headers=headers, expires=tokens.expires)
    # Written before anything else is asked: a login that is had is not lost for want of the next step.
    kept = _save_credential(config, entry, msgspec.json.encode(tokens))
    if name == copilot.SERVICE.name:
        kept = _fetch_copilot_token(config, service, kept, tokens)
    who = f" as {sanitize_text(kept.account)}" if kept.account else ""
    print_text(f"{name}: you are logged in{who}; the login is kept in {_storage_place(config)}.")
    _warn_outranked(config, name, "login")
    return 0


async def _authorize_login(
    service: OAuthService, client: HttpClient, wish: ConnectRequest, *, windowed: bool
) -> OAuthTokenResponse:
    by_code = wish.device or (service.name == "copilot" and not wish.browser)
    if by_code:
        device = chatgpt.device_login if service.name == "chatgpt" else device_login
        return await device(service, client, _show_code)

    async def visit(url: str) -> None:
        opened = windowed and not wish.no_browser and await asyncio.to_thread(webbrowser.open, url)
        what = "The browser opens the login page. If it does not, open this link" if opened else "Open this link"
        sys.stderr.write(f"{what}:\n\n  {url}\n\nWaiting for you to log in (Ctrl-C gives up) …\n")
        sys.stderr.flush()

    return await browser_login(service, client, visit)


def _token_details(service: OAuthService, granted: OAuthTokenResponse) -> tuple[LoginTokens, str, dict[str, str]]:
    if service.name == copilot.SERVICE.name:
        return LoginTokens(origin=granted.access_token, refresh=granted.refresh_token or ""), "", {}
    account, headers = chatgpt.read_account(granted)
    return tokens_from_response(granted), account, headers


def _fetch_copilot_token(
    config: Config, service: OAuthService, kept: CredentialEntry, tokens: LoginTokens
) -> CredentialEntry:
    """The first token of Copilot's own, which tells whether the account has Copilot, and where it is."""
    try:
        lent, url = _run_with_client(
            config, lambda client: copilot.exchange_token(service, client, tokens.origin, SystemClock())
        )
    except (OAuthRefusal, ProviderError) as error:
        message = f"You are logged in to GitHub, but not to Copilot: {error}"
        raise UserError(
            message, kind="login_refused", next=["sylph connect copilot", "sylph disconnect copilot"]
        ) from error
    fresh = replace(lent, refresh=tokens.refresh)
    return _save_credential(config, replace(kept, base_url=url, expires=lent.expires), msgspec.json.encode(fresh))


def _check_key(config: Config, endpoint: Endpoint) -> str:
    """What the service says of the key: how many models it opens."""
    models = _run_with_client(config, lambda client: credential_storage.check_key(endpoint, client))
    return f" {count_noun(models, 'model')} can be used: sylph models {endpoint.name}"


def _save_credential(config: Config, entry: CredentialEntry, secret: bytes) -> CredentialEntry:
    return credential_storage.save_credential(_credential_store(config), entry, secret)


def _run_with_client(config: Config, work: Callable[[HttpClient], Awaitable[T]]) -> T:
    async def whole() -> T:
        mine = asyncio.current_task()
        assert mine
        # Only a handler of the loop's own wakes it up in any case: a Ctrl-C that came just as it began to wait for the
        # browser would otherwise be heard with the next event, which may never come.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, mine.cancel)
        client = HttpClient(proxies=build_proxies(config))
        try:
            return await work(client)
        finally:
            await client.close()

    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _credential_store(config: Config) -> CredentialStore:
    return open_credential_store(config, ask_passphrase)


def _storage_place(config: Config) -> str:
    return _credential_store(config).describe_location()


def _warn_outranked(config: Config, name: str, kind: StoredCredentialKind) -> None:
    """Says so where something else comes first."""
    first = _credential_store(config).preferred_kind(name)
    if origin := config.origins.get(f"providers.{name}.api_key"):
        sys.stderr.write(f"sylph: {origin} is set too, and comes before it.\n")
    elif first != kind:
        what = "a login" if first == "login" else "another tool's login"
        sys.stderr.write(f"sylph: {what} is stored too, and comes before it: sylph disconnect {name}  forgets both.\n")


def _show_code(code: DeviceCode) -> None:
    sys.stderr.write(f"Open {sanitize_text(code.verification_uri)} on any device and type in this code:\n\n")
    sys.stderr.write(f"  {sanitize_text(code.user_code)}\n\nWaiting for you to log in (Ctrl-C gives up) …\n")
    sys.stderr.flush()


def _login_off_error(service: OAuthService, config: Config) -> UserError:
    sys.stderr.write(f"{service.terms}\n")
    others = [
        tool for tool in TOOL_CREDENTIALS if tool.provider == service.name and find_tool_file(tool, config.environ)
    ]
    key = ["or use an API key: sylph connect openai"] if service.name == "chatgpt" else []
    return UserError(
        f"Logging in to {service.title} is off: it needs a client id, and Sylph brings none.",
        kind="config",
        next=[
            f"sylph config set logins.{service.name}.client_id ID  with one that you may use",
            *(f"or use the login of {tool.title}: {_borrow_command(tool)}" for tool in others),
            *key,
        ],
    )


def _borrow_command(tool: ToolCredential) -> str:
    return f"sylph connect {tool.provider} --from {tool.name}"
