"""An OAuth server on loopback: real HTTP, rotating refresh tokens, and every trouble a real one can make.

    async with OAuthServer() as server:
        server.trouble["token"] = [html(500), hang()]     # the next answers of an endpoint, before it behaves again
        ...                                              # server.asked is what was asked, server.refreshes how often

As a process, for programs that outlive a test's loop; it prints its base URL:

    python tests/oauth_server.py
"""

import asyncio
import base64
import hashlib
import json
import secrets
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

ACCOUNT = "acct-1"


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: str = "{}"
    kind: str = "application/json"
    location: str = ""
    hang: float = 0.0
    drop: bool = False
    late: bool = False
    """The server does what was asked, and only then answers like this."""


def said(status: int = 200, **fields: Any) -> Answer:
    return Answer(status, json.dumps(fields))


def error(code: str, status: int = 400, **more: Any) -> Answer:
    return said(status, error=code, **more)


def html(status: int = 200) -> Answer:
    return Answer(status, "<html><h1>Bad gateway</h1></html>", "text/html")


def garbage() -> Answer:
    return Answer(200, '{"access_token": "half of')


def hang(seconds: float = 60.0) -> Answer:
    return Answer(hang=seconds)


def dropped() -> Answer:
    return Answer(drop=True)


def too_late(answer: Answer) -> Answer:
    """The request takes effect, but its answer is lost: the cruellest trouble for who must not lose a token."""
    return Answer(answer.status, answer.body, answer.kind, answer.location, answer.hang, answer.drop, late=True)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    fields: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass
class OAuthServer:
    """`lifetime` is how long a token is good, as the server says; `approve` whether a device code was typed."""

    lifetime: float = 3600.0
    rotate: bool = True
    interval: float = 1.0
    approve: bool = True
    port: int = 0
    trouble: dict[str, list[Answer]] = field(default_factory=lambda: defaultdict[str, list[Answer]](list))
    asked: list[Asked] = field(default_factory=list[Asked])
    good: set[str] = field(default_factory=set[str])
    spent: set[str] = field(default_factory=set[str])
    access: set[str] = field(default_factory=set[str])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    refreshes: int = 0
    exchanges: int = 0
    revoked: bool = False
    pages: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "OAuthServer":
        self._talks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    def settings(self, provider: str, **more: str) -> str:
        """The table of the config file that sends a login here."""
        told = {
            "client_id": "tests",
            "authorize_url": f"{self.url}/authorize",
            "token_url": f"{self.url}/token",
            "device_url": f"{self.url}/device",
            **({"exchange_url": f"{self.url}/exchange"} if provider == "copilot" else {}),
            **more,
        }
        return f"[logins.{provider}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items())

    def endpoints(self) -> dict[str, str]:
        names = {"authorize_url": "authorize", "token_url": "token", "device_url": "device", "exchange_url": "exchange"}
        return {key: f"{self.url}/{name}" for key, name in names.items()}

    def count(self, path: str) -> int:
        return sum(asked.path == path for asked in self.asked)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await _request(reader):
                self.asked.append(asked)
                if not await self._reply(asked, writer):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _reply(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        waiting = self.trouble[asked.path.strip("/")]
        trouble = waiting.pop(0) if waiting else None
        answer = self._answer(asked) if trouble is None or trouble.late else trouble
        answer = trouble or answer
        await asyncio.sleep(answer.hang)
        if answer.drop:
            return False
        body = answer.body.encode()
        place = f"Location: {answer.location}\r\n" if answer.location else ""
        head = (
            f"HTTP/1.1 {answer.status} X\r\nContent-Type: {answer.kind}\r\n{place}Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        return True

    def _answer(self, asked: Asked) -> Answer:
        match asked.path:
            case "/authorize":
                return self._authorize(asked.query)
            case "/device":
                return self._device()
            case "/token":
                return self._token(asked.fields)
            case "/exchange":
                return self._exchange(asked.headers.get("authorization", ""))
            case _:
                return error("not_found", 404)

    def _authorize(self, query: Mapping[str, str]) -> Answer:
        """The login page; whoever opens it is logged in at once and sent back."""
        self.pages += 1
        code = secrets.token_urlsafe(16)
        self.codes[code] = dict(query)
        return Answer(302, "", location=f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}")

    def _device(self) -> Answer:
        return said(
            device_code="device-1",
            user_code="ABCD-EFGH",
            verification_uri=f"{self.url}/activate",
            expires_in=900,
            interval=self.interval,
        )

    def _token(self, fields: Mapping[str, Any]) -> Answer:
        if fields.get("client_id") != "tests":
            return error("invalid_client", 401)
        match fields.get("grant_type"):
            case "authorization_code":
                return self._redeem(fields)
            case "refresh_token":
                return self._refresh(str(fields.get("refresh_token")))
            case "urn:ietf:params:oauth:grant-type:device_code":
                return self.grant() if self.approve else error("authorization_pending")
            case _:
                return error("unsupported_grant_type")

    def _redeem(self, fields: Mapping[str, Any]) -> Answer:
        asked = self.codes.pop(str(fields.get("code")), None)
        if asked is None or asked["redirect_uri"] != fields.get("redirect_uri"):
            return error("invalid_grant")
        digest = hashlib.sha256(str(fields.get("code_verifier")).encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked.get("code_challenge_method") != "S256" or proof != asked["code_challenge"]:
            return error("invalid_grant", error_description="PKCE")
        return self.grant()

    def _refresh(self, token: str) -> Answer:
        if token in self.spent:
            # An old one comes again: somebody has stolen it, so all of them end.
            self.revoked = True
            self.good.clear()
            self.access.clear()
            return error("invalid_grant", error_description=f"refresh token {token} was used before")
        if token not in self.good or self.revoked:
            return error("invalid_grant")
        self.refreshes += 1
        if self.rotate:
            self.good.discard(token)
            self.spent.add(token)
        return self.grant(token if not self.rotate else "")

    def grant(self, refresh: str = "") -> Answer:
        access = jwt({"https://api.openai.com/auth": {"chatgpt_account_id": ACCOUNT}, "email": "who@example.test"})
        refresh = refresh or f"refresh-{secrets.token_urlsafe(12)}"
        self.good.add(refresh)
        self.access.add(access)
        return said(access_token=access, refresh_token=refresh, id_token=access, expires_in=self.lifetime)

    def _exchange(self, authorization: str) -> Answer:
        if authorization.removeprefix("token ") not in self.access:
            return said(401, message="Bad credentials")
        self.exchanges += 1
        token = f"copilot-{secrets.token_urlsafe(8)}"
        self.access.add(token)
        return said(token=token, refresh_in=self.lifetime, expires_at=9_999_999_999, endpoints={})


def jwt(claims: Mapping[str, Any]) -> str:
    parts = [{"alg": "none"}, {**claims, "jti": secrets.token_urlsafe(8)}]
    body = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return f"{body}.unsigned"


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = line.split(" ", 2)
    place = urlsplit(target)
    as_json = headers.get("content-type") == "application/json"
    fields: dict[str, Any] = json.loads(body) if as_json else dict(parse_qsl(body.decode()))
    return Asked(method, place.path, dict(parse_qsl(place.query)), fields, headers)


async def main() -> None:
    async with OAuthServer() as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
