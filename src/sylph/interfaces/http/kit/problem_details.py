"""Errors on the wire: problem details (RFC 9457) with our kind and the next actions."""

import re
from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from sylph.core.errors import ErrorReport, LogConflict, NotFound, ProviderError, StoreError, SylphError, ToolError
from sylph.interfaces.http.kit.request_id import current_request_id

STATUS_BY_KIND: dict[str, int] = {
    "not_found": 404,
    "ambiguous": 409,
    "wrong_state": 409,
    "session_busy": 409,
    "conflict": 409,
    "changed": 412,
    "no_model": 409,
    "no_service": 502,
    "budget_spent": 402,
    "store_failed": 503,
    "unauthorized": 401,
    "forbidden": 403,
    "not_permitted": 403,
    "deleted": 409,
    "answered": 409,
    "in_progress": 409,
    "nothing_open": 409,
    "nothing_to_undo": 409,
    "undo_blocked": 409,
    "too_short": 409,
    "compaction_failed": 409,
    "session_damaged": 409,
    "key_reused": 422,
    "two_keys": 422,
    "empty_message": 422,
    "invalid_arguments": 422,
    "bad_answer": 422,
    "bad_label": 422,
    "unknown_parameter": 422,
    "no_workspace": 422,
    "not_an_export": 422,
    "chain_broken": 422,
    "queue_full": 429,
    "store_full": 503,
    "store_read_only": 503,
    "store_busy": 503,
    "store_closed": 503,
    "store_damaged": 503,
    "too_large": 413,
    "too_many": 429,
    "ending": 503,
    "io": 503,
    "bad_host": 421,
    "foreign_origin": 403,
    "forged": 403,
    "placeholder_token": 401,
    "secret_in_url": 400,
    "bad_request": 400,
    "too_slow": 408,
    "encoded": 415,
    "outside_workspace": 403,
    "protected_path": 403,
    "permission_denied": 403,
    "is_directory": 409,
    "not_a_directory": 409,
    "not_a_file": 409,
    "symlink_loop": 409,
    "exists": 409,
    "not_text": 409,
    "not_a_repository": 409,
    "changed_meanwhile": 412,
    "bad_range": 416,
    "no_space": 507,
    "model_not_found": 404,
    "gone": 409,
    "closing": 503,
}
# What is told as a command of the program, as a request.
REQUEST_FOR_COMMAND: dict[str, str] = {
    "connect": "GET /api/v1/providers",
    "config": "PATCH /api/v1/config",
    "config schema": "GET /api/v1/config/schema",
    "doctor": "GET /api/v1/doctor",
    "identity": "GET /api/v1/identity",
    "models": "GET /api/v1/models",
    "policy": "GET /api/v1/policy",
    "resume": "POST /api/v1/sessions/{id}/resume",
    "roles": "GET /api/v1/roles",
    "session list": "GET /api/v1/sessions",
    "session show": "GET /api/v1/sessions/{id}/turns",
    "task list": "GET /api/v1/tasks",
    "token create": "POST /api/v1/keys",
    "token link": "POST /api/v1/links",
    "token list": "GET /api/v1/keys",
    "tools": "GET /api/v1/tools",
    "undo": "POST /api/v1/sessions/{id}/undo",
}
COMMAND_PATTERN = re.compile(r"\bsylph ([a-z]+)(?: ([a-z]+))?")
PROBLEM_MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong and what to do about it."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    details: dict[str, str] = {}
    next: tuple[str, ...] = ()
    request: str = ""
    """By this the request is found in the server's log."""


class AccessDenied(SylphError):
    """A request that is turned away at the door. Its kind says which status it gets."""

    kind = "forbidden"


def error_status(error: SylphError) -> int:
    kind = error.trouble.kind
    if kind in STATUS_BY_KIND:
        return STATUS_BY_KIND[kind]
    if isinstance(error, StoreError) and not isinstance(error, LogConflict):
        # A full disk, a folder that cannot be written: once that is mended, the same request goes through.
        return 503
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, ProviderError):
        return 502
    return 422 if isinstance(error, ToolError) else 400


def make_problem(trouble: ErrorReport, status: int) -> Problem:
    return Problem(
        type=f"urn:sylph:problem:{trouble.kind}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=trouble.message,
        kind=trouble.kind,
        details=trouble.details,
        next=(*trouble.next, *_equivalent_requests(trouble.next)),
        request=current_request_id(),
    )


def _equivalent_requests(told: Sequence[str]) -> list[str]:
    """The requests that do what these commands do: who is told by HTTP may have no command line."""
    found = [
        REQUEST_FOR_COMMAND.get(f"{one} {two}") or REQUEST_FOR_COMMAND.get(one)
        for each in told
        for one, two in COMMAND_PATTERN.findall(each)
    ]
    return list(dict.fromkeys(each for each in found if each))


def problem_response(trouble: ErrorReport, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(make_problem(trouble, status)), status, headers, PROBLEM_MEDIA_TYPE)


def error_response(error: SylphError) -> Response:
    status, headers = error_status(error), dict[str, str]()
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if wait := error.trouble.details.get("retry_after"):
        headers["Retry-After"] = wait
    return problem_response(error.trouble, status, headers)


def plain_problem_response(kind: str, message: str, status: int, next: Sequence[str] = ()) -> Response:
    return problem_response(ErrorReport(kind, message, {}, tuple(next)), status)
