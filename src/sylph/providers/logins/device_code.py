"""Logging in by a code that is typed in elsewhere: RFC 8628."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from msgspec import Struct

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError, UserError
from sylph.net.http_client import HttpClient
from sylph.providers.logins.oauth import OAuthRefusal, OAuthService, decode_response, post_form, request_token
from sylph.providers.logins.tokens import OAuthTokenResponse

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL, LONGEST = 5.0, 1800.0
SLOWER = 5.0
# So many useless answers in a row end it.
MAX_FAILURES = 5


class DeviceCode(Struct, frozen=True):
    """What the person has to type, and where."""

    user_code: str = ""
    verification_uri: str = ""
    device_code: str = ""
    expires_in: float = 900.0
    interval: float = INTERVAL
    verification_uri_complete: str = ""

    def __repr__(self) -> str:
        return f"DeviceCode({self.user_code!r})"


ShowCode = Callable[[DeviceCode], None]
"""Tells the person what to type, and where."""


async def device_login(
    service: OAuthService, client: HttpClient, show: ShowCode, clock: Clock | None = None
) -> OAuthTokenResponse:
    """Waits until the person has typed the code. Raises UserError where that does not come about."""
    clock = clock or SystemClock()
    said = await post_form(
        service, client, service.device_url, {"client_id": service.client_id, "scope": service.scope}
    )
    code = check_code(service, decode_response(service, said, DeviceCode))
    show(code)
    fields = {"grant_type": GRANT_TYPE, "device_code": code.device_code}
    return await poll_token(service, code, lambda: request_token(service, client, fields), clock)


def check_code(service: OAuthService, code: DeviceCode) -> DeviceCode:
    """The code, if it can be shown."""
    place = urlsplit(code.verification_uri)
    if not (code.user_code.isprintable() and code.user_code and code.device_code and place.scheme in ("http", "https")):
        raise ProviderError("format", f"{service.title} sent no code to log in with.")
    return code


async def poll_token(
    service: OAuthService, code: DeviceCode, ask: Callable[[], Awaitable[OAuthTokenResponse]], clock: Clock
) -> OAuthTokenResponse:
    """Asks again and again, as slowly as the server wants it, until it says yes or no or the code is too old."""
    end = clock.ticks() + min(code.expires_in if code.expires_in > 0 else LONGEST, LONGEST)
    interval, failed = max(code.interval, 0.0) or INTERVAL, 0
    while clock.ticks() < end:
        await clock.sleep(min(interval, max(end - clock.ticks(), 0.0)))
        try:
            return await ask()
        except OAuthRefusal as error:
            if error.code not in ("authorization_pending", "slow_down"):
                raise _refusal_error(service, error) from error
            interval += SLOWER if error.code == "slow_down" else 0
            failed = 0
        except ProviderError as error:
            failed += 1
            if failed >= MAX_FAILURES or not error.is_retryable:
                raise
            interval = min(interval * 2, 60.0) if error.failure in ("timeout", "rate_limited") else interval
    raise UserError(
        f"The code for {service.title} was not used in time.",
        kind="login_expired",
        next=[f"sylph connect {service.name}  gets a new one"],
    )


def _refusal_error(service: OAuthService, error: OAuthRefusal) -> UserError:
    again = (f"sylph connect {service.name}",)
    if error.code == "expired_token":
        return UserError(f"The code for {service.title} is too old by now.", kind="login_expired", next=again)
    if error.code == "access_denied":
        return OAuthRefusal(error.code, f"The login to {service.title} was declined in the browser.", next=again)
    return OAuthRefusal(error.code, str(error), next=again)
