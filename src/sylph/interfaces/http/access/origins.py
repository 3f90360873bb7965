"""From which pages a request may come: our own, or those of sites that were named."""

from collections.abc import Iterable

from sylph.interfaces.http.access.asked import Asked
from sylph.interfaces.http.problems import Denied

# What a form of another site can send without being asked whether it may.
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
PORTS = {"http": "80", "https": "443"}


class Origins:
    """`named` are the other sites that may use the API, with a token: never with our cookie."""

    def __init__(self, named: Iterable[str] = (), *, secure: bool = False) -> None:
        self.named = frozenset(each.strip().rstrip("/").lower() for each in named)
        # A proxy in front may speak TLS for us, never the other way round.
        self._schemes = ("https",) if secure else ("http", "https")

    def own(self, asked: Asked) -> bool:
        """Whether it says that it comes from a page of ours."""
        origin = asked.head(b"origin")
        scheme, _, place = origin.partition("://")
        return scheme in self._schemes and _with_port(place, scheme) == _with_port(asked.head(b"host"), scheme)

    def names(self, asked: Asked) -> bool:
        return bool(self.named) and asked.head(b"origin").lower() in self.named

    def check(self, asked: Asked) -> None:
        """Raises Denied for what another site's page sends."""
        origin = asked.head(b"origin")
        if origin:
            if not self.own(asked) and not self.names(asked):
                raise _foreign("server.origins names the sites that may")
        elif asked.head(b"sec-fetch-site") not in ("", "same-origin", "none") and not _followed(asked):
            raise _foreign("open the address in the browser itself")

    def check_cookie(self, asked: Asked) -> None:
        """The browser sends a cookie without being asked: what changes something must show that our page sent it."""
        if asked.safe:
            return
        if not self.own(asked) and (asked.kind == "websocket" or asked.head(b"sec-fetch-site") != "same-origin"):
            raise _foreign("programs use a token: sylph token create NAME")
        kind = asked.head(b"content-type").partition(";")[0].strip().lower()
        if asked.method == "POST" and (not kind or kind in FORMS) and not asked.head(b"x-sylph"):
            raise Denied(
                "With a cookie, a POST is JSON or carries the header `X-Sylph`: no form can send either.",
                kind="forged",
                next=["send Content-Type: application/json", "or X-Sylph: 1"],
            )


def _followed(asked: Asked) -> bool:
    """A link to one of our pages, on another site: it brings no cookie along and shows nothing to that site."""
    return asked.page and asked.method == "GET" and asked.head(b"sec-fetch-mode") == "navigate"


def _with_port(place: str, scheme: str) -> str:
    place = place.lower()
    return place if place.rpartition(":")[2].isdecimal() and place[-1:] != "]" else f"{place}:{PORTS[scheme]}"


def _foreign(hint: str) -> Denied:
    return Denied("Another site's page may not ask this.", kind="foreign_origin", next=[hint])
