"""From which pages a request may come: our own, or those of sites that were named."""

from collections.abc import Iterable

from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.security.checks.request_head import RequestHead

# What a form of another site can send without being asked whether it may.
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
DEFAULT_PORTS = {"http": "80", "https": "443"}


class OriginPolicy:
    """`named` are the other sites that may use the API, with a token: never with our cookie."""

    def __init__(self, named: Iterable[str] = (), *, secure: bool = False) -> None:
        self.named = frozenset(each.strip().rstrip("/").lower() for each in named)
        # A proxy in front may speak TLS for us, never the other way round.
        self._schemes = ("https",) if secure else ("http", "https")

    def is_own_page(self, asked: RequestHead) -> bool:
        """Whether it says that it comes from a page of ours."""
        origin = asked.header(b"origin")
        scheme, _, place = origin.partition("://")
        return scheme in self._schemes and _with_port(place, scheme) == _with_port(asked.header(b"host"), scheme)

    def is_trusted_site(self, asked: RequestHead) -> bool:
        return bool(self.named) and asked.header(b"origin").lower() in self.named

    def check_origin(self, asked: RequestHead) -> None:
        """Raises Denied for what another site's page sends."""
        origin = asked.header(b"origin")
        if origin:
            if not self.is_own_page(asked) and not self.is_trusted_site(asked):
                raise _foreign_origin_error("server.origins names the sites that may")
        elif asked.header(b"sec-fetch-site") not in ("", "same-origin", "none") and not _is_navigation(asked):
            raise _foreign_origin_error("open the address in the browser itself")

    def check_cookie(self, asked: RequestHead) -> None:
        """The browser sends a cookie without being asked: what changes something must show that our page sent it."""
        if asked.is_safe:
            return
        if not self.is_own_page(asked) and (
            asked.kind == "websocket" or asked.header(b"sec-fetch-site") != "same-origin"
        ):
            raise _foreign_origin_error("programs use a token: sylph token create NAME")
        kind = asked.header(b"content-type").partition(";")[0].strip().lower()
        if asked.method == "POST" and (not kind or kind in FORM_TYPES) and not asked.header(b"x-sylph"):
            raise AccessDenied(
                "With a cookie, a POST is JSON or carries the header `X-Sylph`: no form can send either.",
                kind="forged",
                next=["send Content-Type: application/json", "or X-Sylph: 1"],
            )


def _is_navigation(asked: RequestHead) -> bool:
    """A link to one of our pages, on another site: it brings no cookie along and shows nothing to that site."""
    return asked.is_page and asked.method == "GET" and asked.header(b"sec-fetch-mode") == "navigate"


def _with_port(place: str, scheme: str) -> str:
    place = place.lower()
    return place if place.rpartition(":")[2].isdecimal() and place[-1:] != "]" else f"{place}:{DEFAULT_PORTS[scheme]}"


def _foreign_origin_error(hint: str) -> AccessDenied:
    return AccessDenied("Another site's page may not ask this.", kind="foreign_origin", next=[hint])
