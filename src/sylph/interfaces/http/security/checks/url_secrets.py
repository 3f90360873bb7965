"""No secrets in addresses: they end up in histories, logs and other sites' statistics."""

import re
from urllib.parse import unquote_plus

from sylph.interfaces.http.kit.problem_details import AccessDenied

SECRET_PARAMETERS = frozenset(
    {
        "token",
        "access_token",
        "auth_token",
        "id_token",
        "refresh_token",
        "api_key",
        "apikey",
        "api-key",
        "key",
        "auth",
        "authorization",
        "bearer",
        "password",
        "secret",
        "code",
        "sylph",
    }
)
# A file may be called sylph_notes.txt.
TOKEN_PATTERN = re.compile(r"sylph_[\w-]{40,}")


def reject_url_secrets(query: bytes) -> None:
    """Raises Denied where an address carries a credential: it is not used, and whoever sent it should know."""
    if not query:
        return
    for each in query.decode("latin-1").split("&"):
        name, _, value = each.partition("=")
        if unquote_plus(name).strip().lower() in SECRET_PARAMETERS or TOKEN_PATTERN.match(unquote_plus(value)):
            raise AccessDenied(
                "A credential does not belong into an address.",
                kind="secret_in_url",
                next=["send it as `Authorization: Bearer TOKEN`", "revoke it if it was real: sylph token revoke ID"],
            )
