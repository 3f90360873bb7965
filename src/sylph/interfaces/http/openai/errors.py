"""Errors as clients of these dialects read them, in the place of problem details."""

from http import HTTPStatus

import msgspec
from msgspec import Struct
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sylph.core.errors import ErrorReport
from sylph.interfaces.http.kit import problem_details
from sylph.interfaces.http.kit.problem_details import Problem

PREFIX = "/v1/"
ERROR_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
# What a turn failed of, where that is told by another status than usual.
FAILURE_STATUS = {"rate_limited": 429, "overloaded": 503, "breaker_open": 503, "budget_spent": 402, "cancelled": 409}


class OpenAIErrorBody(Struct, frozen=True, kw_only=True):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIErrorAnswer(Struct, frozen=True, kw_only=True):
    """What went wrong, in the form of these dialects."""

    error: OpenAIErrorBody


def openai_error(problem: Problem) -> OpenAIErrorAnswer:
    advice = "".join(f"\n{each}" for each in problem.next)
    return OpenAIErrorAnswer(
        error=OpenAIErrorBody(
            message=problem.detail + advice,
            type=ERROR_TYPES.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error"),
            param=problem.details.get("param"),
            code=problem.kind,
        )
    )


def failure_answer(trouble: ErrorReport) -> tuple[int, OpenAIErrorAnswer]:
    """How a turn that failed is told, and with which status."""
    status = FAILURE_STATUS.get(trouble.kind) or problem_details.STATUS_BY_KIND.get(trouble.kind) or 502
    return status, openai_error(problem_details.make_problem(trouble, status))


class OpenAIErrorMiddleware:
    """Puts every problem that is told under `/v1/` into the words of these dialects, whoever told it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _ErrorTranslator(send).send)


class _ErrorTranslator:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if MutableHeaders(scope=message).get("content-type", "").startswith(problem_details.PROBLEM_MEDIA_TYPE):
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._send_error(self._start)
            return
        await self._send(message)

    async def _send_error(self, start: Message) -> None:
        try:
            body = msgspec.json.encode(openai_error(msgspec.json.decode(self._body, type=Problem)))
        except msgspec.DecodeError:
            status = int(start["status"])
            said = OpenAIErrorBody(
                message=HTTPStatus(status).phrase, type=ERROR_TYPES.get(status, "invalid_request_error")
            )
            body = msgspec.json.encode(OpenAIErrorAnswer(error=said))
        headers = MutableHeaders(scope=start)
        headers["content-type"], headers["content-length"] = "application/json", str(len(body))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})
