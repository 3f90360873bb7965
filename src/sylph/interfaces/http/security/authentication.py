"""Who asks: told by a token in the head, or by the cookie of a login."""

from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.security.checks.placeholder_token import is_placeholder
from sylph.interfaces.http.security.checks.request_head import RequestHead
from sylph.interfaces.http.security.rate_limit import RequestRateLimiter, client_network
from sylph.interfaces.http.security.token_store import ServerTokenStore

COOKIE = "sylph"
# Under TLS a browser keeps a cookie of this name from everybody else, also from other names of the same site.
SECURE_COOKIE = "__Host-sylph"


class Authenticator:
    def __init__(self, keys: ServerTokenStore, *, secure: bool = False) -> None:
        self._keys = keys
        self._start = f"{SECURE_COOKIE if secure else COOKIE}="
        # Only what fails is counted: who guesses gets slow, who has a token does not notice.
        self._failed = RequestRateLimiter(1.0, 20)

    def authenticate(self, asked: RequestHead) -> Principal | None:
        """None for whoever says nothing. Raises Denied for a token that is none: it is never taken for nothing."""
        if b"authorization" in asked.headers:
            return self._check_bearer(asked)
        for each in asked.header(b"cookie").split(";"):
            if (found := each.strip()).startswith(self._start):
                return self._keys.find_principal(found[len(self._start) :], "cookie")
        return None

    def _check_bearer(self, asked: RequestHead) -> Principal:
        scheme, _, token = asked.header(b"authorization").partition(" ")
        token = token.strip()
        principal = self._keys.find_principal(token, "token") if scheme.lower() == "bearer" else None
        if principal:
            return principal
        self._failed.check(client_network(asked.client_address), "Too many wrong tokens.")
        raise bad_token_error(scheme, token)


def bad_token_error(scheme: str, token: str) -> AccessDenied:
    hints = ["sylph token create NAME --scope read", "sylph token list"]
    if scheme.lower() != "bearer":
        return AccessDenied("Only `Authorization: Bearer TOKEN` is understood.", kind="unauthorized", next=hints)
    if is_placeholder(token):
        return AccessDenied("This is a placeholder, not a token.", kind="placeholder_token", next=hints)
    return AccessDenied("The token is not known, or no longer: revoked or expired.", kind="unauthorized", next=hints)
