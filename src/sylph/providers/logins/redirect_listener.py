"""A listener on this machine that the browser is sent back to, for one login."""

import asyncio
import hmac
import html
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from sylph.core.errors import UserError
from sylph.core.text.formatting import first_line
from sylph.providers.logins.oauth import OAuthRefusal, OAuthService

HEAD_LIMIT = 16_384
# How long somebody who has connected may take to say what they want.
SECONDS = 10.0
PAGE = """<!doctype html><meta charset="utf-8"><title>Sylph</title>
<style>body{{font:1.1em system-ui;max-width:32em;margin:20vh auto;padding:0 1em}}</style><p>{words}</p>"""
DONE = "Sylph has heard of your login. You can close this page and go back to the terminal."
ALREADY_DONE = "This login is over already. You can close this page."
UNRELATED = "This page does not belong to the login that Sylph waits for. Nothing was done."


class RedirectListener:
    """Waits for the browser. Whoever comes with another `state` is sent away, and the waiting goes on."""

    def __init__(self, service: OAuthService, state: str) -> None:
        self._service, self._state = service, state
        place = urlsplit(service.redirect)
        self._host, self._port, self._path = place.hostname or "127.0.0.1", place.port or 0, place.path or "/"
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._talks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> "RedirectListener":
        # Only ever on this machine, whatever the redirect names; `localhost` may mean either family.
        try:
            server = await asyncio.start_server(self._accept_client, "127.0.0.1", self._port, limit=HEAD_LIMIT)
        except OSError as error:
            raise UserError(
                f"Nothing can listen on port {self._port}, where {self._service.title} sends the browser back to.",
                kind="port_taken",
                next=[
                    f"end what uses port {self._port}: is another login waiting?",
                    f"sylph connect {self._service.name} --device  needs no port",
                ],
            ) from error
        self._servers.append(server)
        self._port = server.sockets[0].getsockname()[1]
        if self._host == "localhost":
            with suppress(OSError):
                self._servers.append(
                    await asyncio.start_server(self._accept_client, "::1", self._port, limit=HEAD_LIMIT)
                )
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        # Let a page that is just being sent arrive; nobody is waited for longer than that.
        if self._talks:
            await asyncio.wait(self._talks, timeout=0.5)
        for talk in self._talks:
            talk.cancel()
        if not self._code.done():
            self._code.cancel()

    @property
    def redirect(self) -> str:
        """Where the browser is to be sent, with the port that was free."""
        return f"http://{self._host}:{self._port}{self._path}"

    async def wait_for_code(self, seconds: float) -> str:
        """The code that the browser brings. Raises UserError where it brings a refusal, or does not come."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._code), seconds)
        except TimeoutError:
            raise UserError(
                f"Nobody logged in to {self._service.title} within {seconds / 60:.0f} minutes.",
                kind="login_expired",
                next=[f"sylph connect {self._service.name}"],
            ) from None

    def _accept_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.get_running_loop().create_task(self._serve_client(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # A visitor that says nothing of use is nobody's concern.
            with suppress(TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    status, words = self._answer_request(head.decode("latin-1").partition("\r\n")[0])
                    writer.write(_render_page(status, words))
                    await writer.drain()
        finally:
            writer.close()

    def _answer_request(self, line: str) -> tuple[str, str]:
        """What to tell the browser; the first good visit ends the waiting."""
        method, _, rest = line.partition(" ")
        place = urlsplit(rest.partition(" ")[0])
        if method != "GET" or place.path != self._path:
            return "404 Not Found", UNRELATED
        told = {name: values[0] for name, values in parse_qs(place.query).items()}
        if not hmac.compare_digest(told.get("state", "").encode(), self._state.encode()):
            return "400 Bad Request", UNRELATED
        if self._code.done():
            return "200 OK", ALREADY_DONE
        if "code" in told:
            self._code.set_result(told["code"])
            return "200 OK", DONE
        refusal = self._build_refusal(told.get("error", "no code came"), told.get("error_description", ""))
        self._code.set_exception(refusal)
        return "200 OK", str(refusal)

    def _build_refusal(self, error: str, why: str) -> OAuthRefusal:
        again = (f"sylph connect {self._service.name}",)
        if error == "access_denied":
            return OAuthRefusal(error, f"The login to {self._service.title} was declined in the browser.", next=again)
        told = f"{first_line(error, 60)}{f': {first_line(why, 200)}' if why else ''}"
        return OAuthRefusal(error, f"{self._service.title} says {told}", next=again)


def _render_page(status: str, words: str) -> bytes:
    body = PAGE.format(words=html.escape(words)).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\r\n"
    )
    return head.encode() + body
