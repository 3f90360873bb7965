"""A request becomes a message to a session, or the answer to a question that it has."""

from msgspec import Struct

from sylph.core.commands import Answer, Send
from sylph.core.errors import NoModel, NotFound, UserError
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import InputReceived
from sylph.core.permission.types import Mode
from sylph.core.text.formatting import first_line
from sylph.engine.calls.permission import EDIT, NO
from sylph.engine.calls.policy import MODES_BY_FREEDOM
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import NewSession, Runtime
from sylph.interfaces.http.files.workspace_access import resolve_workspace
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.openai.conversation import (
    ConversationPosition,
    choose_session,
    conversation_key,
    find_conversation,
    find_input,
    find_reply,
    find_turns,
)
from sylph.interfaces.http.openai.message_parts import ConversationMessage, unsupported_error
from sylph.interfaces.http.openai.request_bodies import CompletionRequest, unanswered_messages
from sylph.interfaces.http.sessions.session_edit import creator_name
from sylph.interfaces.http.state.server_state import ServerState

SYLPH = "sylph"
MODES: dict[str, Mode] = {mode: mode for mode in MODES_BY_FREEDOM}
RESPONSE_PREFIX = "resp_"
HEAD, TAIL = "<instructions>\n", "\n</instructions>"
# A client that tries again within this time gets the answer of its first try.
RETRY_WINDOW_MS = 3_600_000


class ReplyHandle(Struct, frozen=True, kw_only=True):
    """What a reply will come from: reply `number` of the turn that answers `input`, which stands at `seq`."""

    session: str
    input: str
    number: int
    seq: int


class ModelChoice(Struct, frozen=True, kw_only=True):
    """What a client has chosen by the name of the model; the rest is left to the session, or as configured."""

    model: str = ""
    mode: Mode | None = None


async def start_reply(
    server: ServerState, principal: Principal, wanted: CompletionRequest, *, again: bool
) -> ReplyHandle:
    """Sees to it that the request is worked on. What a client sends twice because it heard nothing is done once."""
    runtime = server.app.runtime
    choice = await choose_model(server, wanted.model)
    if named := wanted.metadata.get("session"):
        summary = await runtime.find_session(named)
        asked = next(iter(summary.asked.values()), None)
        if asked:
            return await _answer_question(server, principal, wanted, await _find_open_question(runtime, summary, asked))
        repeated = _find_repeated_message(runtime, summary.id, wanted) if again else None
        if not repeated:
            _check_session_mode(summary, choice)
        return repeated or await _send_message(server, principal, wanted, summary.id, choice)
    if wanted.previous:
        return await _continue_conversation(
            server, principal, wanted, await find_reply(runtime, wanted.previous, RESPONSE_PREFIX), choice
        )
    if again and (tried := await _find_earlier_try(runtime, principal, wanted)):
        return tried
    if found := await find_conversation(runtime, principal, wanted.messages):
        return await _continue_conversation(server, principal, wanted, found, choice, again=again)
    return await _start_session(server, principal, wanted, choice)


def _check_session_mode(summary: SessionState, choice: ModelChoice) -> None:
    """A session that was named keeps its mode: others work in it, and a model's name is no way to change that."""
    if choice.mode and choice.mode != summary.mode:
        raise UserError(
            f"The session works in mode `{summary.mode}`, and the name of a model does not change that.",
            kind="wrong_state",
            details={"param": "model", "session": summary.id, "mode": summary.mode},
            next=[
                f"the model `{SYLPH}` takes the session as it is",
                f"PATCH /api/v1/sessions/{summary.id} sets a mode",
            ],
        )


async def choose_model(server: ServerState, model: str) -> ModelChoice:
    """What the name of a model stands for."""
    most = server.app.config.settings.server.mode
    first, _, rest = model.partition("/")
    if first != SYLPH:
        try:
            return ModelChoice(model=await server.app.choose_model(model))
        except NoModel as error:
            told = error.trouble
            raise NotFound(told.message, kind="model_not_found", details={"param": "model"}, next=told.next) from error
    if not rest and model == SYLPH:
        return ModelChoice()
    mode = MODES.get(rest)
    if mode is None or stricter_mode(mode, most) != mode:
        names = ", ".join(model_names(most))
        raise NotFound(
            f"There is no model {model!r}.",
            kind="model_not_found",
            details={"param": "model"},
            next=[f"the models: {names}", "`server.mode` in the config is the loosest that a client gets"],
        )
    return ModelChoice(mode=mode)


def tighter_mode(choice: ModelChoice, summary: SessionState) -> Mode | None:
    """The mode that a session is to get: by the name of a model it is only ever tightened."""
    wanted = choice.mode
    return wanted if wanted and wanted != summary.mode and stricter_mode(wanted, summary.mode) == wanted else None


def _check_mode_allowed(server: ServerState, principal: Principal, summary: SessionState, tighter: Mode | None) -> None:
    """Raises where a session would do more than a client gets, unless it is used by who could have allowed that."""
    most, mode = server.app.config.settings.server.mode, tighter or summary.mode
    if stricter_mode(mode, most) == mode or principal.has_scope("approve"):
        return
    raise AccessDenied(
        f"The session works in mode `{mode}`; here a client gets `{most}` at the most.",
        details={"scope": "approve", "session": summary.id, "mode": mode},
        next=["use a token with `approve`", f"PATCH /api/v1/sessions/{summary.id} sets a stricter mode"],
    )


def stricter_mode(one: Mode, other: Mode) -> Mode:
    return one if MODES_BY_FREEDOM.index(one) > MODES_BY_FREEDOM.index(other) else other


def model_names(most: Mode) -> list[str]:
    return [
        SYLPH,
        *(f"{SYLPH}/{mode}" for mode in MODES_BY_FREEDOM if stricter_mode(mode, most) == mode and mode != "trust"),
    ]


async def _find_earlier_try(runtime: Runtime, principal: Principal, wanted: CompletionRequest) -> ReplyHandle | None:
    for tale, summary in await find_turns(runtime, conversation_key(runtime, principal, wanted.messages)):
        cancelled = tale.failure or (tale.ended and tale.ended.outcome in ("cancelled", "failed"))
        if not cancelled and summary.updated - tale.created < RETRY_WINDOW_MS:
            seq = find_input(runtime.log, tale.session, tale.input)
            return ReplyHandle(session=tale.session, input=tale.input, number=0, seq=seq)
    return None


def _find_repeated_message(runtime: Runtime, session: str, wanted: CompletionRequest) -> ReplyHandle | None:
    """The last message of the session, where it is the same one."""
    for seq, _, fact in runtime.log.find_facts(session, InputReceived)[:1]:
        if fact.text.endswith(
            runtime.redactor.redact_text("\n\n".join(map(_format_message, unanswered_messages(wanted.messages))))
        ):
            return ReplyHandle(session=session, input=fact.id, number=0, seq=seq)
    return None


async def _continue_conversation(
    server: ServerState,
    principal: Principal,
    wanted: CompletionRequest,
    found: ConversationPosition,
    choice: ModelChoice,
    *,
    again: bool = False,
) -> ReplyHandle:
    if found.asked:
        return await _answer_question(server, principal, wanted, found)
    if found.turn.replies[found.number].asked and (again or not found.turn.is_over):
        # Somebody has answered already; what came of it is the reply.
        return _next_reply(server, found)
    runtime = server.app.runtime
    async with runtime.lock_idempotency_key(f"v1-{found.turn.session}"):
        # Read anew: another request may have gone on with it meanwhile.
        found = ConversationPosition(
            turn=found.turn, number=found.number, summary=await runtime.find_session(found.turn.session)
        )
        tighter = tighter_mode(choice, found.summary)
        _check_mode_allowed(server, principal, found.summary, tighter)
        session = await choose_session(runtime, found)
        if tighter and session == found.summary.id:
            # The other mode is for what comes now: the session itself stays as whoever else works in it knows it.
            session = await runtime.fork_session(session)
        return await _send_message(server, principal, wanted, session, choice)


async def _start_session(
    server: ServerState, principal: Principal, wanted: CompletionRequest, choice: ModelChoice
) -> ReplyHandle:
    app, settings = server.app, server.app.config.settings
    last = unanswered_messages(wanted.messages)
    folder = wanted.metadata.get("workspace", "")
    new = NewSession(
        workspace=await resolve_workspace(server, principal, folder) if folder else server.workspace,
        model=choice.model or await app.choose_model(""),
        mode=choice.mode or stricter_mode(settings.server.mode, settings.mode),
        title=first_line("\n".join(each.text for each in last).strip() or "files", 60),
        sandbox=app.sandbox_enabled(),
        by=creator_name(principal),
    )
    earlier = wanted.messages[: len(wanted.messages) - len(last)]
    return await _send_message(server, principal, wanted, await app.runtime.create_session(new), earlier=earlier)


async def _send_message(
    server: ServerState,
    principal: Principal,
    wanted: CompletionRequest,
    session: str,
    choice: ModelChoice | None = None,
    *,
    earlier: tuple[ConversationMessage, ...] = (),
) -> ReplyHandle:
    runtime = server.app.runtime
    if choice:
        summary = await runtime.find_session(session)
        tighter = tighter_mode(choice, summary)
        _check_mode_allowed(server, principal, summary, tighter)
        await server.app.adapt_session(summary, model=choice.model, mode=tighter)
    last = unanswered_messages(wanted.messages)
    blocks = [
        _format_rules(runtime, session, wanted.rules),
        _format_history(earlier),
        *(_format_message(each) for each in last),
    ]
    send = Send(
        text="\n\n".join(filter(None, blocks)),
        delivery="follow",
        # Told apart by the conversation, where it is all there.
        key=""
        if wanted.previous or "session" in wanted.metadata
        else conversation_key(runtime, principal, wanted.messages),
        actor=principal.actor,
        files=tuple(file for each in (*earlier, *last) for file in each.files),
        form=wanted.form,
    )
    input = await runtime.send(session, send)
    return ReplyHandle(session=session, input=input, number=0, seq=find_input(runtime.log, session, input))


def _format_rules(runtime: Runtime, session: str, rules: str) -> str:
    """The client's rules, where the session was not told the same before."""
    earlier = (fact.text for _, _, fact in runtime.log.find_facts(session, InputReceived) if fact.text.startswith(HEAD))
    said = next(earlier, HEAD).removeprefix(HEAD).partition(TAIL)[0]
    return f"{HEAD}{rules}{TAIL}" if rules and runtime.redactor.redact_text(rules) != said else ""


def _format_history(messages: tuple[ConversationMessage, ...]) -> str:
    """A conversation that was had elsewhere, or is told differently from how it was."""
    lines = [f"{each.role}: {each.text}{' [files]' if each.files else ''}" for each in messages]
    return "<conversation>\n" + "\n\n".join(lines) + "\n</conversation>" if lines else ""


def _format_message(message: ConversationMessage) -> str:
    return message.text if message.role == "user" else f"[{message.role}] {message.text}"


async def _find_open_question(runtime: Runtime, summary: SessionState, asked: Asked) -> ConversationPosition:
    """Where a session waits with a question."""
    found = await find_reply(runtime, f"{RESPONSE_PREFIX}{summary.id}_{summary.open_input}_0", RESPONSE_PREFIX)
    number = next(at for at, each in enumerate(found.turn.replies) if each.asked and each.asked.id == asked.id)
    return ConversationPosition(turn=found.turn, number=number, summary=summary)


async def _answer_question(
    server: ServerState, principal: Principal, wanted: CompletionRequest, found: ConversationPosition
) -> ReplyHandle:
    asked = found.asked
    assert asked
    if not principal.has_scope("approve"):
        raise AccessDenied(
            f"A question waits for somebody who may answer it: {asked.question}",
            details={"scope": "approve", "session": found.turn.session, "question": asked.id},
            next=["use a token with `approve`", "answer it at another door, then go on here"],
        )
    text = "\n\n".join(each.text for each in unanswered_messages(wanted.messages)).strip()
    answer, reason = parse_answer(asked, text)
    said = Answer(id=asked.id, answer=answer, reason=reason, actor=principal.actor, via=principal.via)
    await server.app.runtime.send(found.turn.session, said)
    return _next_reply(server, found)


def parse_answer(asked: Asked, text: str) -> tuple[str, str]:
    """What somebody who only chats has answered. An approval needs a plain yes; anything else is a no, and why."""
    choices = [each for each in asked.choices if each != EDIT]
    plain = text.strip().strip(".!`'\"").lower()
    said = next((each for each in choices if each.lower() == plain), None)
    if said:
        return said, ""
    if asked.kind == "approval":
        return NO, text
    if asked.choices and not asked.free:
        raise unsupported_error(
            f"{text!r} is not one of the choices.", "messages", f"answer with one of: {', '.join(choices)}"
        )
    return text, ""


def _next_reply(server: ServerState, found: ConversationPosition) -> ReplyHandle:
    tale = found.turn
    seq = find_input(server.app.runtime.log, tale.session, tale.input)
    return ReplyHandle(session=tale.session, input=tale.input, number=found.number + 1, seq=seq)
