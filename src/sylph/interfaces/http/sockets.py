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
from sylph.core.errors import NotFound, SylphError, Trouble, UserError
from sylph.engine.policy import LOOSE
from sylph.interfaces.http import problems
from sylph.interfaces.http.house import House
from sylph.interfaces.http.live import cursor
from sylph.interfaces.http.live import messages as wire
from sylph.interfaces.http.live.frames import Texts
from sylph.interfaces.http.live.lines import Line
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.route import admitted, permitted
from sylph.interfaces.http.session_edit import must_approve
from sylph.interfaces.http.who import Scope

logger = logging.getLogger("sylph.http")
# After so many messages that cannot be read there is nobody at the other end who speaks this language.
WRONG = 20
POLICY, RESTART = 1008, 1012
MOST_BESIDE = 8
LAST = 0.2

SCOPES: dict[type[wire.Order], Scope] = {
    wire.Say: "chat",
    wire.Interrupt: "chat",
    wire.Pause: "chat",
    wire.Resume: "chat",
    wire.Retry: "chat",
    wire.Compact: "chat",
    wire.Withdraw: "chat",
    wire.See: "chat",
    wire.Rename: "chat",
    wire.SetModel: "chat",
    wire.SetMode: "chat",
    wire.Reply: "approve",
}


async def door(websocket: WebSocket) -> None:
    house: House = websocket.app.state.house
    try:
        who = admitted(websocket, "read")
        assert who
        line = house.hub.line(who, Texts())
    except SylphError as error:
        await websocket.send_denial_response(problems.answer_error(error))
        return
    await websocket.accept()
    line.say(
        wire.Opened(
            client=line.client,
            sessions={},
            beat_ms=house.hub.beat_ms,
            version=__version__,
            started=int(house.started * 1000),
        )
    )

    async def write(data: bytes) -> None:
        await websocket.send_text(data.decode())

    talk = Talk(house, line, websocket)
    try:
        await house.hub.serve(line, write, talk.listen())
    finally:
        talk.end()
        line.reader.close()
    with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
        async with asyncio.timeout(LAST):
            await websocket.close(talk.code)


class Talk:
    """What one client asks for, in the order in which it asks."""

    def __init__(self, house: House, line: Line, websocket: WebSocket) -> None:
        self._house, self._line, self._websocket = house, line, websocket
        self._wrong = 0
        self._beside = set[asyncio.Task[None]]()
        self.code = RESTART
        """Why the connection is closed, if the client does not do it."""

    async def listen(self) -> None:
        """Returns when the client has left, or says nothing that can be understood."""
        while (message := await self._websocket.receive())["type"] != "websocket.disconnect":
            text: str | bytes = message.get("text") or message.get("bytes") or b""
            try:
                order = wire.heard.decode(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                self._wrong += 1
                self._line.say(wire.Refused(id=_id(text), problem=_unread(error)))
                if self._wrong >= WRONG:
                    self.code = POLICY
                    return
            else:
                await self._take(order)
            await self._line.room()

    def end(self) -> None:
        for task in self._beside:
            task.cancel()

    async def _take(self, order: wire.Heard) -> None:
        if not isinstance(order, wire.Compact):
            await self._answer(order)
        elif len(self._beside) < MOST_BESIDE:
            # It takes as long as a model takes; nobody else waits for it.
            task = asyncio.create_task(self._answer(order))
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)
        else:
            self._refuse(order, Denied("Too much is being condensed already.", kind="too_many", next=["wait for it"]))

    async def _answer(self, order: wire.Heard) -> None:
        try:
            self._line.say(await self._do(order))
        except SylphError as error:
            self._refuse(order, error)
        except Exception:
            # A mistake of ours costs one command, not the connection.
            logger.exception("a command by WebSocket failed: %s", type(order).__name__)
            said = Trouble("internal", "Sylph made a mistake; its log says which.", {}, ("look into the server's log",))
            self._line.say(wire.Refused(id=order.id, problem=problems.problem_of(said, 500)))

    def _refuse(self, order: wire.Heard, error: SylphError) -> None:
        problem = problems.problem_of(error.trouble, problems.status_of(error))
        self._line.say(wire.Refused(id=order.id, problem=problem))

    async def _do(self, order: wire.Heard) -> wire.Message:
        permitted(self._line.who, SCOPES.get(type(order), "read"))
        if isinstance(order, wire.OfSession):
            order = cast("wire.Heard", replace(order, session=await self._house.hub.whole(order.session)))
        match order:
            case wire.Ping(id=id):
                return wire.Pong(id=id)
            case wire.Notes(id=id, on=on):
                if on:
                    await self._house.hub.look(self._line)
                else:
                    self._house.hub.look_away(self._line)
                return wire.Ack(id=id)
            case wire.Subscribe(id=id):
                return wire.Ack(id=id, session=order.session, seq=self._follow(order))
            case wire.Unsubscribe(id=id, session=session):
                self._line.leave(session)
                return wire.Ack(id=id, session=session)
            case _:
                command = await self._command(order)
                kept = await self._house.app.runtime.send(order.session, command)
                return wire.Ack(id=order.id, session=order.session, input=kept)

    def _follow(self, order: wire.Subscribe) -> int:
        head = self._house.app.runtime.log.head(order.session).seq
        if not head:
            raise NotFound(f"There is no session {order.session!r}.", next=["GET /api/v1/sessions lists them"])
        cursor.bounded({**self._line.reader.after, order.session: 0})
        self._line.follow(order.session, order.after, head)
        return head

    async def _command(self, order: wire.Heard) -> commands.Command:  # noqa: C901, PLR0911, PLR0912 - one flat table
        actor, via = self._line.who.actor, self._line.who.via
        match order:
            case wire.Say(text=text, delivery=delivery, key=key, dry_run=dry_run):
                return commands.Send(text=text, delivery=delivery, key=key, dry_run=dry_run, actor=actor)
            case wire.Reply(question=id, answer=answer, reason=reason, arguments=given):
                arguments = msgspec.json.encode(given).decode() if given is not None else ""
                return commands.Answer(id=id, answer=answer, reason=reason, arguments=arguments, actor=actor, via=via)
            case wire.Interrupt(reason=reason, queue=queue):
                return commands.Interrupt(reason=reason, drop=queue == "drop")
            case wire.Pause():
                return commands.Pause()
            case wire.Resume():
                return commands.Continue()
            case wire.Retry(turn=turn, text=text, dry_run=dry_run):
                return commands.Retry(turn=turn, text=text, dry_run=dry_run)
            case wire.Compact():
                return commands.Compact()
            case wire.Withdraw(input=input):
                return commands.Withdraw(id=input)
            case wire.See(upto=upto):
                return commands.See(upto=upto)
            case wire.Rename(title=title):
                return commands.Rename(title=title)
            case wire.SetMode(mode=mode, session=session):
                if LOOSE.index(mode) < LOOSE.index(self._house.app.runtime.glance(session).mode):
                    must_approve(self._line.who, f"the mode `{mode}`")
                return commands.SetMode(mode=mode, actor=actor)
            case wire.SetModel(model=model):
                return commands.SetModel(model=await self._house.app.choose(model))
            case _:
                raise UserError(f"{type(order).__name__} is no command to a session.")


def _id(text: str | bytes) -> str:
    """The id of a message that is wrong in something else."""
    try:
        return msgspec.json.decode(text, type=_Named).id[:100]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""


class _Named(msgspec.Struct):
    id: str = ""


def _unread(error: Exception) -> problems.Problem:
    return problems.problem_of(
        Trouble(
            "bad_message", f"The message cannot be read: {error}", {}, ("docs/handbook/streams.md tells its form",)
        ),
        400,
    )
