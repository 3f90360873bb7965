"""A request becomes a message to a session, or the answer to a question that it has."""

from msgspec import Struct

from sylph.core.commands import Answer, Send
from sylph.core.errors import NoModel, NotFound, UserError
from sylph.core.facts import Asked, InputReceived, Mode
from sylph.core.text import first_line
from sylph.engine.permit import EDIT, NO
from sylph.engine.policy import LOOSE
from sylph.engine.runtime import NewSession, Runtime
from sylph.engine.summary import Summary
from sylph.interfaces.http.files.naming import named
from sylph.interfaces.http.house import House
from sylph.interfaces.http.openai.bodies import Wanted, fresh
from sylph.interfaces.http.openai.parts import Said, refuse
from sylph.interfaces.http.openai.thread import Found, by_id, kept, key_of, known, place, received
from sylph.interfaces.http.problems import Denied
from sylph.interfaces.http.session_edit import maker
from sylph.interfaces.http.who import Who

SYLPH = "sylph"
MODES: dict[str, Mode] = {mode: mode for mode in LOOSE}
RESPONSE = "resp_"
HEAD, TAIL = "<instructions>\n", "\n</instructions>"
# A client that tries again within this time gets the answer of its first try.
AGAIN_MS = 3_600_000


class Begun(Struct, frozen=True, kw_only=True):
    """What a reply will come from: reply `number` of the turn that answers `input`, which stands at `seq`."""

    session: str
    input: str
    number: int
    seq: int


class Choice(Struct, frozen=True, kw_only=True):
    """What a client has chosen by the name of the model; the rest is left to the session, or as configured."""

    model: str = ""
    mode: Mode | None = None


async def begin(house: House, who: Who, wanted: Wanted, *, again: bool) -> Begun:
    """Sees to it that the request is worked on. What a client sends twice because it heard nothing is done once."""
    runtime = house.app.runtime
    choice = await chosen(house, wanted.model)
    if named := wanted.metadata.get("session"):
        summary = await runtime.find(named)
        asked = next(iter(summary.asked.values()), None)
        if asked:
            return await _answer(house, who, wanted, await _at(runtime, summary, asked))
        repeated = _repeated(runtime, summary.id, wanted) if again else None
        if not repeated:
            _must_be_its_own(summary, choice)
        return repeated or await _send(house, who, wanted, summary.id, choice)
    if wanted.previous:
        return await _go_on(house, who, wanted, await by_id(runtime, wanted.previous, RESPONSE), choice)
    if again and (tried := await _tried(runtime, who, wanted)):
        return tried
    if found := await known(runtime, who, wanted.messages):
        return await _go_on(house, who, wanted, found, choice, again=again)
    return await _new(house, who, wanted, choice)


def _must_be_its_own(summary: Summary, choice: Choice) -> None:
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


async def chosen(house: House, model: str) -> Choice:
    """What the name of a model stands for."""
    most = house.app.config.settings.server.mode
    first, _, rest = model.partition("/")
    if first != SYLPH:
        try:
            return Choice(model=await house.app.choose(model))
        except NoModel as error:
            told = error.trouble
            raise NotFound(told.message, kind="model_not_found", details={"param": "model"}, next=told.next) from error
    if not rest and model == SYLPH:
        return Choice()
    mode = MODES.get(rest)
    if mode is None or stricter(mode, most) != mode:
        names = ", ".join(model_names(most))
        raise NotFound(
            f"There is no model {model!r}.",
            kind="model_not_found",
            details={"param": "model"},
            next=[f"the models: {names}", "`server.mode` in the config is the loosest that a client gets"],
        )
    return Choice(mode=mode)


def tightened(choice: Choice, summary: Summary) -> Mode | None:
    """The mode that a session is to get: by the name of a model it is only ever tightened."""
    wanted = choice.mode
    return wanted if wanted and wanted != summary.mode and stricter(wanted, summary.mode) == wanted else None


def _must_be_tight(house: House, who: Who, summary: Summary, tighter: Mode | None) -> None:
    """Raises where a session would do more than a client gets, unless it is used by who could have allowed that."""
    most, mode = house.app.config.settings.server.mode, tighter or summary.mode
    if stricter(mode, most) == mode or who.may("approve"):
        return
    raise Denied(
        f"The session works in mode `{mode}`; here a client gets `{most}` at the most.",
        details={"scope": "approve", "session": summary.id, "mode": mode},
        next=["use a token with `approve`", f"PATCH /api/v1/sessions/{summary.id} sets a stricter mode"],
    )


def stricter(one: Mode, other: Mode) -> Mode:
    return one if LOOSE.index(one) > LOOSE.index(other) else other


def model_names(most: Mode) -> list[str]:
    return [SYLPH, *(f"{SYLPH}/{mode}" for mode in LOOSE if stricter(mode, most) == mode and mode != "trust")]


async def _tried(runtime: Runtime, who: Who, wanted: Wanted) -> Begun | None:
    for tale, summary in await kept(runtime, key_of(runtime, who, wanted.messages)):
        cancelled = tale.lost or (tale.ended and tale.ended.outcome in ("cancelled", "failed"))
        if not cancelled and summary.updated - tale.created < AGAIN_MS:
            seq = received(runtime.log, tale.session, tale.input)
            return Begun(session=tale.session, input=tale.input, number=0, seq=seq)
    return None


def _repeated(runtime: Runtime, session: str, wanted: Wanted) -> Begun | None:
    """The last message of the session, where it is the same one."""
    for seq, _, fact in runtime.log.find(session, InputReceived)[:1]:
        if fact.text.endswith(runtime.veil.text("\n\n".join(map(_line, fresh(wanted.messages))))):
            return Begun(session=session, input=fact.id, number=0, seq=seq)
    return None


async def _go_on(house: House, who: Who, wanted: Wanted, found: Found, choice: Choice, *, again: bool = False) -> Begun:
    if found.asked:
        return await _answer(house, who, wanted, found)
    if found.tale.replies[found.number].asked and (again or not found.tale.over):
        # Somebody has answered already; what came of it is the reply.
        return _next(house, found)
    runtime = house.app.runtime
    async with runtime.sole(f"v1-{found.tale.session}"):
        # Read anew: another request may have gone on with it meanwhile.
        found = Found(tale=found.tale, number=found.number, summary=await runtime.find(found.tale.session))
        tighter = tightened(choice, found.summary)
        _must_be_tight(house, who, found.summary, tighter)
        session = await place(runtime, found)
        if tighter and session == found.summary.id:
            # The other mode is for what comes now: the session itself stays as whoever else works in it knows it.
            session = await runtime.fork(session)
        return await _send(house, who, wanted, session, choice)


async def _new(house: House, who: Who, wanted: Wanted, choice: Choice) -> Begun:
    app, settings = house.app, house.app.config.settings
    last = fresh(wanted.messages)
    folder = wanted.metadata.get("workspace", "")
    new = NewSession(
        workspace=await named(house, who, folder) if folder else house.workspace,
        model=choice.model or await app.choose(""),
        mode=choice.mode or stricter(settings.server.mode, settings.mode),
        title=first_line("\n".join(each.text for each in last).strip() or "files", 60),
        sandbox=app.sandboxed(),
        by=maker(who),
    )
    earlier = wanted.messages[: len(wanted.messages) - len(last)]
    return await _send(house, who, wanted, await app.runtime.create(new), earlier=earlier)


async def _send(
    house: House,
    who: Who,
    wanted: Wanted,
    session: str,
    choice: Choice | None = None,
    *,
    earlier: tuple[Said, ...] = (),
) -> Begun:
    runtime = house.app.runtime
    if choice:
        summary = await runtime.find(session)
        tighter = tightened(choice, summary)
        _must_be_tight(house, who, summary, tighter)
        await house.app.adapt(summary, model=choice.model, mode=tighter)
    last = fresh(wanted.messages)
    blocks = [_rules(runtime, session, wanted.rules), _story(earlier), *(_line(each) for each in last)]
    send = Send(
        text="\n\n".join(filter(None, blocks)),
        delivery="follow",
        # Told apart by the conversation, where it is all there.
        key="" if wanted.previous or "session" in wanted.metadata else key_of(runtime, who, wanted.messages),
        actor=who.actor,
        files=tuple(file for each in (*earlier, *last) for file in each.files),
        form=wanted.form,
    )
    input = await runtime.send(session, send)
    return Begun(session=session, input=input, number=0, seq=received(runtime.log, session, input))


def _rules(runtime: Runtime, session: str, rules: str) -> str:
    """The client's rules, where the session was not told the same before."""
    earlier = (fact.text for _, _, fact in runtime.log.find(session, InputReceived) if fact.text.startswith(HEAD))
    said = next(earlier, HEAD).removeprefix(HEAD).partition(TAIL)[0]
    return f"{HEAD}{rules}{TAIL}" if rules and runtime.veil.text(rules) != said else ""


def _story(messages: tuple[Said, ...]) -> str:
    """A conversation that was had elsewhere, or is told differently from how it was."""
    lines = [f"{each.role}: {each.text}{' [files]' if each.files else ''}" for each in messages]
    return "<conversation>\n" + "\n\n".join(lines) + "\n</conversation>" if lines else ""


def _line(message: Said) -> str:
    return message.text if message.role == "user" else f"[{message.role}] {message.text}"


async def _at(runtime: Runtime, summary: Summary, asked: Asked) -> Found:
    """Where a session waits with a question."""
    found = await by_id(runtime, f"{RESPONSE}{summary.id}_{summary.open_input}_0", RESPONSE)
    number = next(at for at, each in enumerate(found.tale.replies) if each.asked and each.asked.id == asked.id)
    return Found(tale=found.tale, number=number, summary=summary)


async def _answer(house: House, who: Who, wanted: Wanted, found: Found) -> Begun:
    asked = found.asked
    assert asked
    if not who.may("approve"):
        raise Denied(
            f"A question waits for somebody who may answer it: {asked.question}",
            details={"scope": "approve", "session": found.tale.session, "question": asked.id},
            next=["use a token with `approve`", "answer it at another door, then go on here"],
        )
    text = "\n\n".join(each.text for each in fresh(wanted.messages)).strip()
    answer, reason = heard(asked, text)
    said = Answer(id=asked.id, answer=answer, reason=reason, actor=who.actor, via=who.via)
    await house.app.runtime.send(found.tale.session, said)
    return _next(house, found)


def heard(asked: Asked, text: str) -> tuple[str, str]:
    """What somebody who only chats has answered. An approval needs a plain yes; anything else is a no, and why."""
    choices = [each for each in asked.choices if each != EDIT]
    plain = text.strip().strip(".!`'\"").lower()
    said = next((each for each in choices if each.lower() == plain), None)
    if said:
        return said, ""
    if asked.kind == "approval":
        return NO, text
    if asked.choices and not asked.free:
        raise refuse(f"{text!r} is not one of the choices.", "messages", f"answer with one of: {', '.join(choices)}")
    return text, ""


def _next(house: House, found: Found) -> Begun:
    tale = found.tale
    seq = received(house.app.runtime.log, tale.session, tale.input)
    return Begun(session=tale.session, input=tale.input, number=found.number + 1, seq=seq)
