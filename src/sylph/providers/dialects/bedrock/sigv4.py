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


class AwsKeys(NamedTuple):
    """A long-lived pair of keys, or a short-lived one that comes with a token."""

    access: str
    secret: str
    session: str = ""


class SignatureScope(NamedTuple):
    """For where, for what and for when a signature is good."""

    region: str
    service: str
    now: float

    @property
    def timestamp(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now))

    @property
    def text(self) -> str:
        return f"{self.timestamp[:8]}/{self.region}/{self.service}/aws4_request"


def parse_aws_keys(key: str) -> AwsKeys | None:
    """`access:secret` or `access:secret:token`; None where it is something else, such as a bearer token."""
    access, _, rest = key.partition(":")
    secret, _, session = rest.partition(":")
    return AwsKeys(access, secret, session) if secret and re.fullmatch(r"\w{16,128}", access) else None


def sign_request(
    method: str, url: str, body: bytes, headers: Mapping[str, str], keys: AwsKeys, scope: SignatureScope
) -> dict[str, str]:
    """`headers` with those that prove who sends them; every one of them is signed, and so is the host."""
    parts = urlsplit(url)
    sent = {**headers, "X-Amz-Date": scope.timestamp}
    if keys.session:
        sent["X-Amz-Security-Token"] = keys.session
    signed = {name.lower(): " ".join(value.split()) for name, value in {**sent, "host": parts.netloc}.items()}
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        [
            method,
            # What is already encoded is encoded once more.
            quote(parts.path or "/", safe="/" + SAFE),
            _canonical_query(parts.query),
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    told = "\n".join([ALGORITHM, scope.timestamp, scope.text, hashlib.sha256(canonical.encode()).hexdigest()])
    signature = _hmac_sha256(_signing_key(keys.secret, scope), told).hex()
    login = f"{ALGORITHM} Credential={keys.access}/{scope.text}, SignedHeaders={names}, Signature={signature}"
    return {**sent, "Authorization": login}


def _canonical_query(query: str) -> str:
    pairs = sorted(
        (quote(name, safe=SAFE), quote(value, safe=SAFE)) for name, value in parse_qsl(query, keep_blank_values=True)
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _signing_key(secret: str, scope: SignatureScope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.text.split("/"):
        key = _hmac_sha256(key, part)
    return key


def _hmac_sha256(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
