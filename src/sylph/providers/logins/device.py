"""Logging in by a code that is typed in elsewhere: RFC 8628."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from msgspec import Struct

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import ProviderError, UserError
from sylph.net.http import Client
from sylph.providers.logins.oauth import Refusal, Service, decoded, granted, post
from sylph.providers.logins.tokens import Granted

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL, LONGEST = 5.0, 1800.0
SLOWER = 5.0
# So many useless answers in a row end it.
PATIENCE = 5


class Code(Struct, frozen=True):
    """What the person has to type, and where."""

    user_code: str = ""
    verification_uri: str = ""
    device_code: str = ""
    expires_in: float = 900.0
    interval: float = INTERVAL
    verification_uri_complete: str = ""

    def __repr__(self) -> str:
        return f"Code({self.user_code!r})"


Show = Callable[[Code], None]
"""Tells the person what to type, and where."""


async def device_login(service: Service, client: Client, show: Show, clock: Clock | None = None) -> Granted:
    """Waits until the person has typed the code. Raises UserError where that does not come about."""
    clock = clock or SystemClock()
    said = await post(service, client, service.device_url, {"client_id": service.client_id, "scope": service.scope})
    code = shown(service, decoded(service, said, Code))
    show(code)
    fields = {"grant_type": GRANT, "device_code": code.device_code}
    return await polled(service, code, lambda: granted(service, client, fields), clock)


def shown(service: Service, code: Code) -> Code:
    """The code, if it can be shown."""
    place = urlsplit(code.verification_uri)
    if not (code.user_code.isprintable() and code.user_code and code.device_code and place.scheme in ("http", "https")):
        raise ProviderError("format", f"{service.title} sent no code to log in with.")
    return code


async def polled(service: Service, code: Code, ask: Callable[[], Awaitable[Granted]], clock: Clock) -> Granted:
    """Asks again and again, as slowly as the server wants it, until it says yes or no or the code is too old."""
    end = clock.ticks() + min(code.expires_in if code.expires_in > 0 else LONGEST, LONGEST)
    interval, failed = max(code.interval, 0.0) or INTERVAL, 0
    while clock.ticks() < end:
        await clock.sleep(min(interval, max(end - clock.ticks(), 0.0)))
        try:
            return await ask()
        except Refusal as error:
            if error.code not in ("authorization_pending", "slow_down"):
                raise _given_up(service, error) from error
            interval += SLOWER if error.code == "slow_down" else 0
            failed = 0
        except ProviderError as error:
            failed += 1
            if failed >= PATIENCE or not error.passing:
                raise
            interval = min(interval * 2, 60.0) if error.failure in ("timeout", "rate_limited") else interval
    raise UserError(
        f"The code for {service.title} was not used in time.",
        kind="login_expired",
        next=[f"sylph connect {service.name}  gets a new one"],
    )


def _given_up(service: Service, error: Refusal) -> UserError:
    again = (f"sylph connect {service.name}",)
    if error.code == "expired_token":
        return UserError(f"The code for {service.title} is too old by now.", kind="login_expired", next=again)
    if error.code == "access_denied":
        return Refusal(error.code, f"The login to {service.title} was declined in the browser.", next=again)
    return Refusal(error.code, str(error), next=again)
