"""Answers of a person to what a session asks. The first one counts."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sylph.core import commands
from sylph.core.errors import NotFound, UserError
from sylph.core.facts.tool_call import Answered, Asked
from sylph.engine.log.store import EventLog
from sylph.interfaces.http.kit.paging import SessionId
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.sessions.session_routes import SESSION_ERRORS, find_active_session
from sylph.interfaces.http.state.server_state import ServerState
from sylph.interfaces.http.views.session_view import SessionQuestion, question_view

routes = RouteGroup("answers")


class AnswerBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer to `question`: one of its choices, or own words where they are welcome.

    For an approval: `yes`, `session` (for the rest of the session), `always` (remembered as a rule), `edit` with the
    `arguments` to run instead, or `no` with a `reason` for the model.
    """

    question: Annotated[str, Meta(max_length=60, description="Its id.")]
    answer: Annotated[str, Meta(max_length=100_000)]
    reason: Annotated[str, Meta(max_length=10_000)] = ""
    arguments: dict[str, Any] | None = None


class AnswersBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    answers: Annotated[tuple[AnswerBody, ...], Meta(min_length=1, max_length=100)]


class AnswerOutcome(Struct, frozen=True, kw_only=True):
    """What counts for a question. `late` if somebody else had answered: then it is what they said."""

    question: str
    answer: str
    reason: str
    by: str
    via: Annotated[str, Meta(description="The name of the credential it came with; empty for the owner's terminal.")]
    at: Annotated[int, Meta(description="Milliseconds since 1970.")]
    result: Literal["taken", "late"]


@routes.get("/sessions/{id}/questions", scope="read", gives=ListPage[SessionQuestion], errors=SESSION_ERRORS)
async def list_questions(server: ServerState, id: SessionId) -> ListPage[SessionQuestion]:
    """List what a session asks: each with its call, what that would do, the choices and what they would allow."""
    summary = await server.app.runtime.find_session(id)
    return ListPage(items=[question_view(summary, asked) for asked in summary.asked.values()])


@routes.post(
    "/sessions/{id}/answers",
    scope="approve",
    gives=ListPage[AnswerOutcome],
    errors=SESSION_ERRORS,
    example=AnswersBody(answers=(AnswerBody(question="t1_q1", answer="no", reason="use another file"),)),
    answer=ListPage(
        items=[
            AnswerOutcome(
                question="t1_q1",
                answer="no",
                reason="use another file",
                by="user",
                via="phone",
                at=1_762_000_030_000,
                result="taken",
            )
        ]
    ),
)
async def answer_questions(
    server: ServerState, principal: Principal, id: SessionId, body: AnswersBody
) -> ListPage[AnswerOutcome]:
    """Answer questions of a session. Where all were answered by somebody else, that is a conflict."""
    log, summary = server.app.runtime.log, await find_active_session(server, id)
    for each in body.answers:
        _check_answer(summary.asked.get(each.question), each)
        if each.question not in summary.asked and not _find_answer(log, summary.id, each.question):
            raise NotFound(f"There is no question {each.question!r}.", next=["GET …/questions"])
    heard = [await _give_answer(server, principal, summary.id, each) for each in body.answers]
    if all(each.result == "late" for each in heard):
        first = heard[0]
        raise AccessDenied(
            f"{first.by} has answered {first.question} already: {first.answer}.",
            kind="answered",
            details={
                "question": first.question,
                "by": first.by,
                "answer": first.answer,
                "reason": first.reason,
                "at": first.at,
            },
            next=["GET …/questions shows what is still open"],
        )
    return ListPage(items=heard)


async def _give_answer(server: ServerState, principal: Principal, session: str, said: AnswerBody) -> AnswerOutcome:
    runtime = server.app.runtime
    arguments = msgspec.json.encode(said.arguments).decode() if said.arguments is not None else ""
    command = commands.Answer(
        id=said.question,
        answer=said.answer,
        reason=said.reason,
        actor=principal.actor,
        arguments=arguments,
        via=principal.via,
    )
    result: Literal["taken", "late"] = "taken"
    try:
        await runtime.send(session, command)
    except NotFound:
        result = "late"
    counts = _find_answer(runtime.log, session, said.question)
    if counts is None:
        raise UserError(
            f"The question {said.question!r} is closed: its turn has ended.", kind="answered", next=["GET …/questions"]
        )
    at, fact = counts
    return AnswerOutcome(
        question=said.question,
        answer=fact.answer,
        reason=fact.reason,
        by=fact.by,
        via=fact.via,
        at=at,
        result=result,
    )


def _find_answer(log: EventLog, session: str, id: str) -> tuple[int, Answered] | None:
    """The answer that counts, and when it came."""
    for seq, _, fact in log.find_facts(session, Answered, f'"id":{msgspec.json.encode(id).decode()}'):
        if fact.id == id:
            return log.read_events(session, after=seq - 1, limit=1)[0].ts, fact
    return None


def _check_answer(asked: Asked | None, said: AnswerBody) -> None:
    """All are checked before any is given."""
    if asked is None:
        return
    if asked.choices and not asked.free and said.answer not in asked.choices:
        choices = ", ".join(asked.choices)
        raise UserError(
            f"{said.answer!r} is not one of the choices.", kind="bad_answer", next=[f"choose one of: {choices}"]
        )
    if said.answer == "edit" and asked.kind == "approval" and not said.arguments:
        raise UserError("The changed arguments are missing.", kind="bad_answer", next=["give all `arguments`"])
