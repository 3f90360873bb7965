"""The WebSocket: the same events as the streams, and commands in."""

import asyncio
import logging
from contextlib import suppress
from typing import cast

import msgspec
from msgspec.structs import replace
from starlette.websockets import WebSocket, WebSocketDisconnect

from sylph import __version__
from sylph.core import commands
from sylph.core.errors import ErrorReport, NotFound, SylphError, UserError
from sylph.engine.calls.policy import MODES_BY_FREEDOM
from sylph.interfaces.http.hub import cursor
from sylph.interfaces.http.hub import messages as wire
from sylph.interfaces.http.hub.frames import WebSocketFraming
from sylph.interfaces.http.hub.subscriber import StreamSubscriber
from sylph.interfaces.http.kit import problem_details
from sylph.interfaces.http.kit.principal import Scope
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import authorize_request, check_scope
from sylph.interfaces.http.sessions.session_edit import require_approve_scope
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.stream import websocket_commands as ws

logger = logging.getLogger("sylph.http")
# After so many messages that cannot be read there is nobody at the other end who speaks this language.
MAX_BAD_MESSAGES = 20
POLICY_VIOLATION, SERVICE_RESTART = 1008, 1012
MAX_BACKGROUND = 8
CLOSE_TIMEOUT = 0.2

COMMAND_SCOPES: dict[type[ws.WsCommand], Scope] = {
    ws.WsSend: "chat",
    ws.WsInterrupt: "chat",
    ws.WsPause: "chat",
    ws.WsResume: "chat",
    ws.WsRetry: "chat",
    ws.WsCompact: "chat",
    ws.WsWithdraw: "chat",
    ws.WsSee: "chat",
    ws.WsRename: "chat",
    ws.WsSetModel: "chat",
    ws.WsSetMode: "chat",
    ws.WsAnswer: "approve",
}


async def serve_websocket(websocket: WebSocket) -> None:
    server: ServerState = websocket.app.state.server
    try:
        principal = authorize_request(websocket, "read")
        assert principal
        line = server.hub.new_subscriber(principal, WebSocketFraming())
    except SylphError as error:
        await websocket.send_denial_response(problem_details.error_response(error))
        return
    await websocket.accept()
    line.queue_message(
        wire.StreamOpened(
            client=line.client,
            sessions={},
            beat_ms=server.hub.heartbeat_ms,
            version=__version__,
            started=int(server.started * 1000),
        )
    )

    async def write(data: bytes) -> None:
        await websocket.send_text(data.decode())

    talk = WebSocketCommandLoop(server, line, websocket)
    try:
        await server.hub.serve_subscriber(line, write, talk.receive_commands())
    finally:
        talk.cancel_tasks()
        line.reader.close()
    with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await websocket.close(talk.code)


class WebSocketCommandLoop:
    """What one client asks for, in the order in which it asks."""

    def __init__(self, server: ServerState, line: StreamSubscriber, websocket: WebSocket) -> None:
        self._server, self._line, self._websocket = server, line, websocket
        self._wrong = 0
        self._beside = set[asyncio.Task[None]]()
        self.code = SERVICE_RESTART
        """Why the connection is closed, if the client does not do it."""

    async def receive_commands(self) -> None:
        """Returns when the client has left, or says nothing that can be understood."""
        while (message := await self._websocket.receive())["type"] != "websocket.disconnect":
            text: str | bytes = message.get("text") or message.get("bytes") or b""
            try:
                order = ws.client_decoder.decode(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                self._wrong += 1
                self._line.queue_message(wire.WsProblem(id=_message_id(text), problem=_unreadable_problem(error)))
                if self._wrong >= MAX_BAD_MESSAGES:
                    self.code = POLICY_VIOLATION
                    return
            else:
                await self._accept_command(order)
            await self._line.wait_for_room()

    def cancel_tasks(self) -> None:
        for task in self._beside:
            task.cancel()

    async def _accept_command(self, order: ws.ClientMessage) -> None:
        if not isinstance(order, ws.WsCompact):
            await self._answer_command(order)
        elif len(self._beside) < MAX_BACKGROUND:
            # It takes as long as a model takes; nobody else waits for it.
            task = asyncio.create_task(self._answer_command(order))
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)
        else:
            self._refuse_command(
                order, AccessDenied("Too much is being condensed already.", kind="too_many", next=["wait for it"])
            )

    async def _answer_command(self, order: ws.ClientMessage) -> None:
        try:
            self._line.queue_message(await self._execute_command(order))
        except SylphError as error:
            self._refuse_command(order, error)
        except Exception:
            # A mistake of ours costs one command, not the connection.
            logger.exception("a command by WebSocket failed: %s", type(order).__name__)
            said = ErrorReport(
                "internal", "Sylph made a mistake; its log says which.", {}, ("look into the server's log",)
            )
            self._line.queue_message(wire.WsProblem(id=order.id, problem=problem_details.make_problem(said, 500)))

    def _refuse_command(self, order: ws.ClientMessage, error: SylphError) -> None:
        problem = problem_details.make_problem(error.trouble, problem_details.error_status(error))
        self._line.queue_message(wire.WsProblem(id=order.id, problem=problem))

    async def _execute_command(self, order: ws.ClientMessage) -> wire.StreamMessage:
        check_scope(self._line.principal, COMMAND_SCOPES.get(type(order), "read"))
        if isinstance(order, ws.WsSessionCommand):
            order = cast(
                "ws.ClientMessage", replace(order, session=await self._server.hub.resolve_session_id(order.session))
            )
        match order:
            case ws.WsPing(id=id):
                return wire.WsPong(id=id)
            case ws.WsWatchChanges(id=id, on=on):
                if on:
                    await self._server.hub.watch_changes(self._line)
                else:
                    self._server.hub.unwatch_changes(self._line)
                return wire.WsAck(id=id)
            case ws.WsSubscribe(id=id):
                return wire.WsAck(id=id, session=order.session, seq=self._follow_session(order))
            case ws.WsUnsubscribe(id=id, session=session):
                self._line.unfollow_session(session)
                return wire.WsAck(id=id, session=session)
            case _:
                command = await self._to_core_command(order)
                kept = await self._server.app.runtime.send(order.session, command)
                return wire.WsAck(id=order.id, session=order.session, input=kept)

    def _follow_session(self, order: ws.WsSubscribe) -> int:
        head = self._server.app.runtime.log.head(order.session).seq
        if not head:
            raise NotFound(f"There is no session {order.session!r}.", next=["GET /api/v1/sessions lists them"])
        cursor.check_session_limit({**self._line.reader.after, order.session: 0})
        self._line.follow_session(order.session, order.after, head)
        return head

    async def _to_core_command(self, order: ws.ClientMessage) -> commands.Command:  # noqa: C901, PLR0911, PLR0912 - one flat table
        actor, via = self._line.principal.actor, self._line.principal.via
        match order:
            case ws.WsSend(text=text, delivery=delivery, key=key, dry_run=dry_run):
                return commands.Send(text=text, delivery=delivery, key=key, dry_run=dry_run, actor=actor)
            case ws.WsAnswer(question=id, answer=answer, reason=reason, arguments=given):
                arguments = msgspec.json.encode(given).decode() if given is not None else ""
                return commands.Answer(id=id, answer=answer, reason=reason, arguments=arguments, actor=actor, via=via)
            case ws.WsInterrupt(reason=reason, queue=queue):
                return commands.Interrupt(reason=reason, drop=queue == "drop")
            case ws.WsPause():
                return commands.Pause()
            case ws.WsResume():
                return commands.Continue()
            case ws.WsRetry(turn=turn, text=text, dry_run=dry_run):
                return commands.Retry(turn=turn, text=text, dry_run=dry_run)
            case ws.WsCompact():
                return commands.Compact()
            case ws.WsWithdraw(input=input):
                return commands.Withdraw(id=input)
            case ws.WsSee(upto=upto):
                return commands.MarkSeen(upto=upto)
            case ws.WsRename(title=title):
                return commands.Rename(title=title)
            case ws.WsSetMode(mode=mode, session=session):
                if MODES_BY_FREEDOM.index(mode) < MODES_BY_FREEDOM.index(
                    self._server.app.runtime.peek_state(session).mode
                ):
                    require_approve_scope(self._line.principal, f"the mode `{mode}`")
                return commands.SetMode(mode=mode, actor=actor)
            case ws.WsSetModel(model=model):
                return commands.SetModel(model=await self._server.app.choose_model(model))
            case _:
                raise UserError(f"{type(order).__name__} is no command to a session.")


def _message_id(text: str | bytes) -> str:
    """The id of a message that is wrong in something else."""
    try:
        return msgspec.json.decode(text, type=_MessageWithId).id[:100]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""


class _MessageWithId(msgspec.Struct):
    id: str = ""


def _unreadable_problem(error: Exception) -> problem_details.Problem:
    return problem_details.make_problem(
        ErrorReport(
            "bad_message", f"The message cannot be read: {error}", {}, ("docs/handbook/streams.md tells its form",)
        ),
        400,
    )
