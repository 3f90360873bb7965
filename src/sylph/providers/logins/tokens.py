"""What a login consists of, and what a service's answer says of it."""

import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

# A token that ends within this many seconds counts as ended: the request must still arrive.
SKEW_SECONDS = 60.0


class LoginTokens(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The secret of a login. `refresh` gets the next `access`; a service may give it out only once."""

    access: str = ""
    refresh: str = ""
    expires: float = 0.0
    """By our clock, in seconds since the epoch; 0 where it does not end, or nobody knows when."""
    origin: str = ""
    """For a service that lends short tokens to whoever is logged in elsewhere: the token of that other login."""

    def __repr__(self) -> str:
        return f"LoginTokens(expires={self.expires:.0f})"

    def is_valid(self, now: float, margin: float = SKEW_SECONDS) -> bool:
        return bool(self.access) and (not self.expires or now < self.expires - margin)


class OAuthTokenResponse(Struct, frozen=True):
    """A token endpoint's answer. Services send numbers as text, and more than we ask for."""

    access_token: str = ""
    refresh_token: str | None = None
    id_token: str | None = None
    expires_in: float | None = None

    def __repr__(self) -> str:
        return "OAuthTokenResponse()"


def tokens_from_response(
    granted: OAuthTokenResponse, before: LoginTokens | None = None, now: float | None = None
) -> LoginTokens:
    """The login after this answer. A refresh token that is not replaced stays good."""
    now = time.time() if now is None else now
    seconds = granted.expires_in if granted.expires_in is not None else jwt_lifetime(granted.access_token)
    return LoginTokens(
        access=granted.access_token,
        refresh=granted.refresh_token or (before.refresh if before else ""),
        # Counted from now by our own clock: so it does not matter what time it is at the service.
        expires=now + seconds if seconds and seconds > 0 else 0.0,
        origin=before.origin if before else "",
    )


def jwt_lifetime(token: str) -> float | None:
    """How long a JWT is good from the moment it was made; None where it does not say."""
    claims = jwt_claims(token)
    made, ends = claims.get("iat"), claims.get("exp")
    return float(ends - made) if isinstance(made, int | float) and isinstance(ends, int | float) else None


def jwt_claims(token: str) -> Mapping[str, Any]:
    """What a JWT says. It is not verified: it came from the service itself, and only tells what to show and send."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return msgspec.json.decode(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=dict[str, Any])
    except (ValueError, msgspec.DecodeError):
        return {}
