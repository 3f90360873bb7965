"""One turn: prepare, act until the model is done, settle."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core import facts, signals
from sylph.core.errors import BudgetSpent, ProviderError
from sylph.core.events import Fact, Signal
from sylph.core.ids import call_id
from sylph.core.messages import Form, Message, ToolCall
from sylph.core.plugin import Note, Plugin, Situation
from sylph.core.provider import ModelInfo, Reply, Request
from sylph.engine import compact, prompt
from sylph.engine.budget.accounts import payer
from sylph.engine.compact import CompactionError, Squeeze
from sylph.engine.executor import Executor
from sylph.engine.floor import Floor
from sylph.engine.gateway import Answer, Call, Gateway, Voice
from sylph.engine.history import History
from sylph.engine.redact.placeholder import MARK, SHAPE
from sylph.engine.routes import ELSEWHERE, MAIN, Routes, Routing, nowhere
from sylph.engine.slots import BACKGROUND
from sylph.engine.states import Trigger
from sylph.engine.undo.undo import NoUndo, Undoing

ASSUMED_WINDOW = 128_000
WARN_AT = (5, 20)
# What a turn itself notes; all other notes come from plugins.
INTERRUPTION, CIRCLES, SECRETS = "interruption", "circles", "secrets"
MOST_RESUMES = 3


class Limits(Struct, frozen=True, kw_only=True):
    """What a turn may use up before it must stop."""

    rounds: int = 250
    seconds: float | None = None
    squeeze: Squeeze = field(default_factory=Squeeze)


class Hands(Struct, frozen=True, kw_only=True):
    """What a turn acts with."""

    gateway: Gateway
    executor: Executor
    plugin: Plugin
    system: str
    head: str = ""
    chat_head: str = ""
    limits: Limits = field(default_factory=Limits)
    undoing: Undoing = field(default_factory=NoUndo)
    routes: Routing = field(default_factory=Routes)


async def run_turn(floor: Floor, hands: Hands) -> None:
    """Everything between the first and the last fact of a turn."""
    await prepare(floor, hands)
    while True:
        await floor.hold()
        await floor.steer()
        if floor.summary.answered:
            # The answer was there when the process died: it is not asked for twice.
            return
        if floor.summary.rounds >= hands.limits.rounds:
            raise _spent(hands.limits.rounds)
        await _explain(floor)
        reply = await think(floor, hands)
        if reply.calls:
            await hands.executor.run(open_calls(floor), floor)
            await _warn(floor)
        elif not floor.summary.queue.keys() - set(floor.summary.follows):
            return


async def prepare(floor: Floor, hands: Hands) -> None:
    """Finishes what an interruption left open, and tells the model what is new since it was last told."""
    fresh = [*await notes(floor, hands), *_interruption(floor)]
    if not floor.summary.open_calls:
        await floor.enter("prepared", *fresh)
        return
    # Nothing may stand between a call and its result.
    await floor.enter("prepared")
    await hands.executor.run(open_calls(floor), floor)
    await floor.emit(*fresh)


def _interruption(floor: Floor) -> list[Fact]:
    """What the model is told when the turn was resumed."""
    times = floor.summary.resumed
    if not times:
        return []
    text = (
        f"Sylph was stopped in the middle of this turn and has gone on from its log ({times} of {MOST_RESUMES} times). "
        "Calls that were under way have their true result, or say that it is unknown. Do not repeat what was done."
    )
    return [facts.ContextAdded(topic=INTERRUPTION, text=text)]


async def notes(floor: Floor, hands: Hands) -> list[Fact]:
    summary = floor.summary
    situation = Situation(
        session=summary.id,
        workspace=summary.workspace,
        mode=summary.mode,
        model=summary.model,
        now=floor.now,
        chat_only=chats(hands.gateway.info(_model(floor, hands))),
        told=summary.told,
    )
    found: list[Note] = []
    for step in hands.plugin.prepare:
        found += await step(situation)
    # What was told is in the log without its secrets.
    told = [(note.topic, floor.veil.text(note.text)) for note in found]
    return [facts.ContextAdded(topic=topic, text=text) for topic, text in told if summary.told.get(topic, "") != text]


async def think(floor: Floor, hands: Hands) -> Reply:
    """One question to the model; what is too much for its window is compacted and asked again, once."""
    window = hands.gateway.info(_model(floor, hands)).window or ASSUMED_WINDOW
    if compact.due(floor.history, window, hands.limits.squeeze):
        await squeeze(floor, hands, "the window fills up")
    may_squeeze = True
    while True:
        call = _question(floor, hands)
        try:
            answer = await hands.gateway.call(call, _voice(floor, hands))
        except ProviderError as error:
            if error.failure == "overflow" and may_squeeze and await squeeze(floor, hands, "too much for the model"):
                may_squeeze = False
            else:
                await _fall_back(floor, hands, call, error)
            continue
        if call.request.system == prompt.CHAT:
            answer = _without_calls(answer)
        async with hands.gateway.settling(answer, _voice(floor, hands)):
            await _record(floor, answer)
        if answer.reply.finish == "filtered":
            raise ProviderError("refusal", "The provider's filter stopped the answer.", next=["Say it differently."])
        return answer.reply


async def _fall_back(floor: Floor, hands: Hands, call: Call, error: ProviderError) -> None:
    """Has another model take over for the rest of the turn; raises the error where none can take all of it."""
    if error.shown or error.failure not in ELSEWHERE:
        raise error
    choice = hands.routes.elsewhere(hands.gateway, call.request, floor.summary)
    if choice.to or choice.passed:
        fell = facts.ModelFellBack(model=call.model, to=choice.to, trouble=error.trouble, passed=choice.passed)
        await floor.emit(fell)
    if not choice.to:
        raise nowhere(error, choice)


async def squeeze(floor: Floor, hands: Hands, why: str, *, after: Trigger = "compacted") -> bool:
    """Compacts; False where that was not possible, and then nothing was dropped."""
    cut = where(floor, hands)
    if cut is None:
        return False
    await floor.hold()
    await floor.enter("compact")
    try:
        made = await compact.compact(
            floor.history, cut, _window(floor, hands), why, lambda ask, text: _condense(floor, hands, ask, text)
        )
    except (CompactionError, ProviderError) as error:
        await floor.enter(after, facts.CompactionFailed(why=why, trouble=error.trouble))
        return False
    await floor.enter(after, made)
    await floor.emit(*await notes(floor, hands))
    return True


def where(floor: Floor, hands: Hands) -> compact.Cut | None:
    return compact.choose(floor.history, _window(floor, hands), hands.limits.squeeze)


def _window(floor: Floor, hands: Hands) -> int:
    """What both the model of the conversation and the one that condenses it can read."""
    models = {_model(floor, hands), hands.routes.model("background", floor.summary)}
    known = [window for model in models if (window := hands.gateway.info(model).window)]
    return min(known) if known else min(floor.history.tokens(), ASSUMED_WINDOW)


async def _condense(floor: Floor, hands: Hands, ask: str, text: str) -> str:
    model = hands.routes.model("background", floor.summary)
    request = Request(model=_bare(model), system=ask, messages=(Message("user", text),))
    call = Call(
        model=model,
        request=request,
        role="background",
        round=floor.summary.rounds,
        priority=BACKGROUND,
        payer=payer(floor.summary),
    )
    voice = Voice(emit=floor.tell, show=lambda _: None)
    answer = await hands.gateway.call(call, voice)
    async with hands.gateway.settling(answer, voice):
        await floor.emit(_responded(answer, role="background"))
    return answer.reply.text


def _voice(floor: Floor, hands: Hands) -> Voice:
    def show(signal: Signal) -> None:
        if isinstance(signal, signals.ArgsDelta):
            # The model still writes the arguments: time to get ready for the command it is about to order.
            hands.executor.warm(signal.name, floor.summary.workspace)
        floor.show(signal)

    return Voice(emit=floor.tell, show=show)


def _question(floor: Floor, hands: Hands) -> Call:
    model = _model(floor, hands)
    chat_only = chats(hands.gateway.info(model))
    request = Request(
        model=_bare(model),
        system=prompt.CHAT if chat_only else hands.system,
        messages=floor.history.messages(),
        tools=() if chat_only else hands.executor.specs,
        family=floor.summary.root,
        image=floor.image,
        **_form(floor.summary.form),
    )
    return Call(
        model=model,
        request=request,
        round=floor.summary.rounds + 1,
        head=hands.chat_head if chat_only else hands.head,
        before=floor.summary.prompt,
        moved=floor.summary.moved,
        payer=payer(floor.summary),
    )


def _form(form: Form | None) -> dict[str, Any]:
    """What a request is told of how its answer is wanted."""
    if form is None:
        return {}
    schema = msgspec.json.decode(form.schema) if form.schema else None
    return {"max_tokens": form.tokens, "effort": form.effort, "schema": schema}


def chats(info: ModelInfo) -> bool:
    """Whether the model cannot be trusted with tools, and only chats."""
    return info.calls is False


def _without_calls(answer: Answer) -> Answer:
    """What a model calls that was given no tools is not done."""
    finish = "stop" if answer.reply.finish == "calls" else answer.reply.finish
    return replace(answer, reply=replace(answer.reply, calls=(), finish=finish))


async def _record(floor: Floor, answer: Answer) -> None:
    """The answer and its calls, together: a log never holds one without the other."""
    turn, first = floor.summary.open_turn, floor.summary.calls + 1
    called = [
        facts.ToolCalled(call=call_id(turn, number), name=call.name, arguments=call.arguments)
        for number, call in enumerate(answer.reply.calls, start=first)
    ]
    await floor.emit(_responded(answer, role="main"), *called)


def _responded(answer: Answer, *, role: str) -> facts.ModelResponded:
    reply: Reply = answer.reply
    return facts.ModelResponded(
        model=answer.model,
        text=reply.text,
        finish=reply.finish,
        reasoning=reply.reasoning,
        calls=len(reply.calls),
        usage=reply.usage,
        cost=answer.cost,
        ms=answer.ms,
        first_ms=answer.first_ms,
        role=role,
        native=reply.native,
    )


def open_calls(floor: Floor) -> Sequence[ToolCall]:
    return [ToolCall(id, call.name, call.arguments) for id, call in floor.summary.open_calls.items()]


def _model(floor: Floor, hands: Hands) -> str:
    return hands.routes.model(MAIN, floor.summary)


def _bare(model: str) -> str:
    return model.partition("/")[2]


async def _warn(floor: Floor) -> None:
    """Tells a model that goes in circles. It is not stopped: waiting for something looks the same from outside."""
    rounds = _latest_rounds(floor.history, WARN_AT[-1])
    same = next((at for at, past in enumerate(rounds) if past != rounds[0]), len(rounds))
    if same in WARN_AT:
        text = f"The last {same} rounds made the same calls and got the same results. Do something else, or stop."
        await floor.emit(facts.ContextAdded(topic=CIRCLES, text=text))


async def _explain(floor: Floor) -> None:
    """Tells a model what a placeholder is, when it first sees one."""
    if SECRETS in floor.summary.told:
        return
    history = floor.history
    new = takewhile(lambda entry: entry.kind != "answer", reversed(history.entries))
    seen = (*(entry.message.text for entry in new), history.summary, *history.words, *history.ledger)
    if any(SHAPE.search(text) for text in seen if MARK in text):
        text = (
            "⟦secret:KIND:TAG⟧ stands for a secret that you do not see. Write it unchanged where the value belongs, in "
            "calls too: tools get the value, and the user reads it. Do not make up placeholders."
        )
        await floor.emit(facts.ContextAdded(topic=SECRETS, text=text))


def _latest_rounds(history: History, count: int) -> list[tuple[list[tuple[str, str]], list[str]]]:
    """The calls and results of the newest rounds of this turn, newest first."""
    rounds: list[tuple[list[tuple[str, str]], list[str]]] = []
    results: list[str] = []
    for entry in reversed(history.entries):
        if entry.kind == "input" or len(rounds) == count:
            break
        if entry.kind == "result":
            results.append(entry.message.text)
        elif entry.kind == "answer":
            rounds.append(([(call.name, call.arguments) for call in entry.message.calls], results))
            results = []
    return rounds


def _spent(rounds: int) -> BudgetSpent:
    return BudgetSpent(
        f"The turn used all of its {rounds} rounds.",
        details={"rounds": rounds},
        next=["Say `go on` to let it continue.", "`limits.rounds` in the config sets how many a turn may have."],
    )
