"""Who asks: told by a token in the head, or by the cookie of a login."""

from sylph.interfaces.http.access.asked import Asked
from sylph.interfaces.http.access.placeholders import is_placeholder
from sylph.interfaces.http.access.rates import Rate, address_of
from sylph.interfaces.http.keys import Keys
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.who import Who

COOKIE = "sylph"
# Under TLS a browser keeps a cookie of this name from everybody else, also from other names of the same site.
SECURE_COOKIE = "__Host-sylph"


class Identity:
    def __init__(self, keys: Keys, *, secure: bool = False) -> None:
        self._keys = keys
        self._start = f"{SECURE_COOKIE if secure else COOKIE}="
        # Only what fails is counted: who guesses gets slow, who has a token does not notice.
        self._failed = Rate(1.0, 20)

    def who(self, asked: Asked) -> Who | None:
        """None for whoever says nothing. Raises Denied for a token that is none: it is never taken for nothing."""
        if b"authorization" in asked.heads:
            return self._bearer(asked)
        for each in asked.head(b"cookie").split(";"):
            if (found := each.strip()).startswith(self._start):
                return self._keys.known(found[len(self._start) :], "cookie")
        return None

    def _bearer(self, asked: Asked) -> Who:
        scheme, _, token = asked.head(b"authorization").partition(" ")
        token = token.strip()
        who = self._keys.known(token, "token") if scheme.lower() == "bearer" else None
        if who:
            return who
        self._failed.check(address_of(asked.client), "Too many wrong tokens.")
        raise refused(scheme, token)


def refused(scheme: str, token: str) -> Denied:
    hints = ["sylph token create NAME --scope read", "sylph token list"]
    if scheme.lower() != "bearer":
        return Denied("Only `Authorization: Bearer TOKEN` is understood.", kind="unauthorized", next=hints)
    if is_placeholder(token):
        return Denied("This is a placeholder, not a token.", kind="placeholder_token", next=hints)
    return Denied("The token is not known, or no longer: revoked or expired.", kind="unauthorized", next=hints)
