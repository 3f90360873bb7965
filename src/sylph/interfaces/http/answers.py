"""Answers of a person to what a session asks. The first one counts."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sylph.core import commands
from sylph.core.errors import NotFound, UserError
from sylph.core.facts import Answered, Asked
from sylph.engine.log import Log
from sylph.interfaces.http.house import House
from sylph.interfaces.http.paging import SessionId
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.http.session_view import Question, question
from sylph.interfaces.http.sessions import HERE, living
from sylph.interfaces.http.who import Who

routes = Routes("answers")


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


class Heard(Struct, frozen=True, kw_only=True):
    """What counts for a question. `late` if somebody else had answered: then it is what they said."""

    question: str
    answer: str
    reason: str
    by: str
    via: Annotated[str, Meta(description="The name of the credential it came with; empty for the owner's terminal.")]
    at: Annotated[int, Meta(description="Milliseconds since 1970.")]
    result: Literal["taken", "late"]


@routes.get("/sessions/{id}/questions", scope="read", gives=Page[Question], errors=HERE)
async def questions(house: House, id: SessionId) -> Page[Question]:
    """List what a session asks: each with its call, what that would do, the choices and what they would allow."""
    summary = await house.app.runtime.find(id)
    return Page(items=[question(summary, asked) for asked in summary.asked.values()])


@routes.post(
    "/sessions/{id}/answers",
    scope="approve",
    gives=Page[Heard],
    errors=HERE,
    example=AnswersBody(answers=(AnswerBody(question="t1_q1", answer="no", reason="use another file"),)),
    answer=Page(
        items=[
            Heard(
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
async def answer(house: House, who: Who, id: SessionId, body: AnswersBody) -> Page[Heard]:
    """Answer questions of a session. Where all were answered by somebody else, that is a conflict."""
    log, summary = house.app.runtime.log, await living(house, id)
    for each in body.answers:
        _must_fit(summary.asked.get(each.question), each)
        if each.question not in summary.asked and not _said(log, summary.id, each.question):
            raise NotFound(f"There is no question {each.question!r}.", next=["GET …/questions"])
    heard = [await _answered(house, who, summary.id, each) for each in body.answers]
    if all(each.result == "late" for each in heard):
        first = heard[0]
        raise Denied(
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
    return Page(items=heard)


async def _answered(house: House, who: Who, session: str, said: AnswerBody) -> Heard:
    runtime = house.app.runtime
    arguments = msgspec.json.encode(said.arguments).decode() if said.arguments is not None else ""
    command = commands.Answer(
        id=said.question,
        answer=said.answer,
        reason=said.reason,
        actor=who.actor,
        arguments=arguments,
        via=who.via,
    )
    result: Literal["taken", "late"] = "taken"
    try:
        await runtime.send(session, command)
    except NotFound:
        result = "late"
    counts = _said(runtime.log, session, said.question)
    if counts is None:
        raise UserError(
            f"The question {said.question!r} is closed: its turn has ended.", kind="answered", next=["GET …/questions"]
        )
    at, fact = counts
    return Heard(
        question=said.question,
        answer=fact.answer,
        reason=fact.reason,
        by=fact.by,
        via=fact.via,
        at=at,
        result=result,
    )


def _said(log: Log, session: str, id: str) -> tuple[int, Answered] | None:
    """The answer that counts, and when it came."""
    for seq, _, fact in log.find(session, Answered, f'"id":{msgspec.json.encode(id).decode()}'):
        if fact.id == id:
            return log.read(session, after=seq - 1, limit=1)[0].ts, fact
    return None


def _must_fit(asked: Asked | None, said: AnswerBody) -> None:
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
