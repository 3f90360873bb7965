"""Amazon's Signature Version 4: a request is signed with a secret that never leaves this machine."""

import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
SAFE = "-_.~"


class Keys(NamedTuple):
    """A long-lived pair of keys, or a short-lived one that comes with a token."""

    access: str
    secret: str
    session: str = ""


class Scope(NamedTuple):
    """For where, for what and for when a signature is good."""

    region: str
    service: str
    now: float

    @property
    def moment(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now))

    @property
    def text(self) -> str:
        return f"{self.moment[:8]}/{self.region}/{self.service}/aws4_request"


def keys_of(key: str) -> Keys | None:
    """`access:secret` or `access:secret:token`; None where it is something else, such as a bearer token."""
    access, _, rest = key.partition(":")
    secret, _, session = rest.partition(":")
    return Keys(access, secret, session) if secret and re.fullmatch(r"\w{16,128}", access) else None


def sign(method: str, url: str, body: bytes, headers: Mapping[str, str], keys: Keys, scope: Scope) -> dict[str, str]:
    """`headers` with those that prove who sends them; every one of them is signed, and so is the host."""
    parts = urlsplit(url)
    sent = {**headers, "X-Amz-Date": scope.moment}
    if keys.session:
        sent["X-Amz-Security-Token"] = keys.session
    signed = {name.lower(): " ".join(value.split()) for name, value in {**sent, "host": parts.netloc}.items()}
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        [
            method,
            # What is already encoded is encoded once more.
            quote(parts.path or "/", safe="/" + SAFE),
            _query(parts.query),
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    told = "\n".join([ALGORITHM, scope.moment, scope.text, hashlib.sha256(canonical.encode()).hexdigest()])
    signature = _mac(_key(keys.secret, scope), told).hex()
    login = f"{ALGORITHM} Credential={keys.access}/{scope.text}, SignedHeaders={names}, Signature={signature}"
    return {**sent, "Authorization": login}


def _query(query: str) -> str:
    pairs = sorted(
        (quote(name, safe=SAFE), quote(value, safe=SAFE)) for name, value in parse_qsl(query, keep_blank_values=True)
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _key(secret: str, scope: Scope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.text.split("/"):
        key = _mac(key, part)
    return key


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
