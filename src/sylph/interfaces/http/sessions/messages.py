"""What is said to a session, and taken back again."""

from typing import Annotated, Literal

from fastapi import Path, Request
from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.responses import Response

from sylph.core import commands
from sylph.core.errors import UserError
from sylph.core.tool import ImageData
from sylph.interfaces.actions.attachment import MAX_ATTACHMENTS, check_attachment_count, make_attachment
from sylph.interfaces.http.kit.idempotency import IdempotencyKey, respond_once
from sylph.interfaces.http.kit.paging import SessionId
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS, find_active_session
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("messages")
MAX_TEXT = 1_000_000
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Key = Annotated[str, Meta(max_length=200, description="The same as the header `Idempotency-Key`.")]


class MessageAttachment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A picture (PNG, JPEG, GIF, WebP) or a PDF document, for the model to look at."""

    name: Annotated[str, Meta(max_length=255)]
    data: Annotated[bytes, Meta(description="Its bytes in base64.")]


Attachments = Annotated[tuple[MessageAttachment, ...], Meta(max_length=MAX_ATTACHMENTS)]


class MessageBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message. While a turn runs it steers that turn, or waits for its end (`follow`)."""

    text: Text = ""
    delivery: Literal["steer", "follow"] = "steer"
    key: Key = ""
    dry_run: Annotated[bool, Meta(description="Show what would be done; change nothing.")] = False
    attachments: Attachments = ()


class SteerBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Text
    key: Key = ""


class RetryBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which turn to run again, the last if left out, and other words for it if wanted."""

    turn: Annotated[str, Meta(max_length=30)] = ""
    text: Text = ""
    dry_run: bool = False
    key: Key = ""


class MessageReceipt(Struct, frozen=True, kw_only=True):
    """A message is kept, under this id; it is answered in the session's stream."""

    id: str
    session: str
    seq: Annotated[int, Meta(description="The session's newest fact before it: follow its stream from there.")]


EXAMPLE = MessageReceipt(id="i3", session="k3xw7hqd8c22", seq=42)


@routes.post(
    "/sessions/{id}/messages",
    scope="chat",
    gives=MessageReceipt,
    status=202,
    errors=(*SESSION_ERRORS, 413),
    attaches=True,
    example=MessageBody(text="Mend the parser."),
    answer=EXAMPLE,
)
async def send_message(
    server: ServerState,
    principal: Principal,
    request: Request,
    id: SessionId,
    body: MessageBody,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Say something to a session."""
    key = pick_idempotency_key(body.key, idempotency_key)
    said = commands.Send(
        text=body.text,
        delivery=body.delivery,
        key=key,
        actor=principal.actor,
        dry_run=body.dry_run,
        files=decode_attachments(body.attachments),
    )
    return await _send_once(server, principal, request, id, said, replace(body, key=""))


@routes.post(
    "/sessions/{id}/steer",
    scope="chat",
    gives=MessageReceipt,
    status=202,
    errors=(*SESSION_ERRORS, 413),
    example=SteerBody(text="Leave the tests alone."),
    answer=EXAMPLE,
)
async def steer_turn(
    server: ServerState,
    principal: Principal,
    request: Request,
    id: SessionId,
    body: SteerBody,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Say something to the turn that runs; without one it is refused."""
    key = pick_idempotency_key(body.key, idempotency_key)
    summary = await find_active_session(server, id)
    if not (summary.open_turn or key in summary.keys):
        raise UserError("No turn runs that could be steered.", kind="wrong_state", next=["POST …/messages begins one"])
    said = commands.Send(text=body.text, delivery="steer", key=key, actor=principal.actor)
    return await _send_once(server, principal, request, summary.id, said, replace(body, key=""))


@routes.post(
    "/sessions/{id}/retry",
    scope="chat",
    gives=MessageReceipt,
    status=202,
    errors=(*SESSION_ERRORS, 413),
    example=RetryBody(turn="t2", text="Mend the lexer."),
    answer=EXAMPLE,
)
async def retry_turn(
    server: ServerState,
    principal: Principal,
    request: Request,
    id: SessionId,
    body: RetryBody,
    idempotency_key: IdempotencyKey = "",
) -> Response:
    """Run a turn again from its message, or from other words. The log keeps the old one; the model forgets it."""
    key = pick_idempotency_key(body.key, idempotency_key)
    again = commands.Retry(turn=body.turn, text=body.text, dry_run=body.dry_run, key=key, actor=principal.actor)
    return await _send_once(server, principal, request, id, again, replace(body, key=""))


@routes.delete("/sessions/{id}/messages/{message}", scope="chat", status=204, errors=SESSION_ERRORS)
async def withdraw_message(
    server: ServerState, id: SessionId, message: Annotated[str, Path(max_length=30, description="Its id, as `i3`.")]
) -> None:
    """Take back a message that waits."""
    await server.app.runtime.send((await find_active_session(server, id)).id, commands.Withdraw(id=message))


async def _send_once(
    server: ServerState,
    principal: Principal,
    request: Request,
    id: str,
    command: commands.Send | commands.Retry,
    wanted: Struct,
) -> Response:
    runtime = server.app.runtime

    async def send(_: str) -> MessageReceipt:
        summary = await find_active_session(server, id)
        _check_same_message(server, summary.id, command, known=command.key in summary.keys)
        return MessageReceipt(id=await runtime.send(summary.id, command), session=summary.id, seq=summary.seq)

    return await respond_once(request, principal, command.key, wanted, send, status=202)


def _check_same_message(
    server: ServerState, session: str, command: commands.Send | commands.Retry, *, known: bool
) -> None:
    """Whoever used a key before, by whichever door: it stands for the words it came with."""
    if not command.key or not known:
        return
    kept = server.app.runtime.find_keyed_message(command.key, session)
    if kept and command.text and server.app.runtime.redactor.redact_text(command.text) != kept.text:
        raise key_reused_error()


def key_reused_error() -> UserError:
    return UserError("This key was used for another message.", kind="key_reused", next=["take a new key for each"])


def pick_idempotency_key(of_body: str, of_header: str) -> str:
    """The key of a request, which may stand in either place."""
    if of_body and of_header and of_body != of_header:
        raise UserError("The body and the header give two different keys.", kind="two_keys", next=["give one of them"])
    return of_body or of_header


def decode_attachments(attachments: tuple[MessageAttachment, ...]) -> tuple[ImageData, ...]:
    check_attachment_count(len(attachments))
    return tuple(make_attachment(each.name, each.data, len(each.data)) for each in attachments)
