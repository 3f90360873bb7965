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
from sylph.core.messages import AnswerFormat, Message, ToolCall
from sylph.core.plugin import ContextNote, Plugin, PrepareContext
from sylph.core.provider import ModelInfo, ModelReply, ModelRequest
from sylph.engine.budget.accounts import budget_owner_of
from sylph.engine.calls.executor import ToolExecutor
from sylph.engine.folds.history import ConversationHistory
from sylph.engine.folds.state_machine import StateTrigger
from sylph.engine.model.concurrency_limit import BACKGROUND
from sylph.engine.model.gateway import CallReporter, ModelAnswer, ModelCall, ModelGateway
from sylph.engine.model.routes import FALLBACK_FAILURES, MAIN, ConfiguredRoutes, ModelRouter, no_fallback_error
from sylph.engine.redact.placeholder import PLACEHOLDER_HINT, PLACEHOLDER_PATTERN
from sylph.engine.turn import compaction, system_prompt
from sylph.engine.turn.compaction import CompactionError, CompactionLimits
from sylph.engine.turn.turn_context import TurnContext
from sylph.engine.undo.undo import NoUndo, UndoBackend

ASSUMED_WINDOW = 128_000
WARN_AT = (5, 20)
# What a turn itself notes; all other notes come from plugins.
INTERRUPTION, LOOP, SECRETS = "interruption", "circles", "secrets"
MOST_RESUMES = 3


class TurnLimits(Struct, frozen=True, kw_only=True):
    """What a turn may use up before it must stop."""

    rounds: int = 250
    seconds: float | None = None
    compaction_limits: CompactionLimits = field(default_factory=CompactionLimits)


class Agent(Struct, frozen=True, kw_only=True):
    """What a turn acts with."""

    gateway: ModelGateway
    executor: ToolExecutor
    plugin: Plugin
    system: str
    head: str = ""
    chat_head: str = ""
    limits: TurnLimits = field(default_factory=TurnLimits)
    undoing: UndoBackend = field(default_factory=NoUndo)
    routes: ModelRouter = field(default_factory=ConfiguredRoutes)


async def run_turn(context: TurnContext, agent: Agent) -> None:
    """Everything between the first and the last fact of a turn."""
    await prepare_turn(context, agent)
    while True:
        await context.wait_while_paused()
        await context.deliver_steering()
        if context.summary.answered:
            # The answer was there when the process died: it is not asked for twice.
            return
        if context.summary.rounds >= agent.limits.rounds:
            raise _round_limit_error(agent.limits.rounds)
        await _explain_placeholders(context)
        reply = await ask_model(context, agent)
        if reply.calls:
            await agent.executor.run_calls(list_open_calls(context), context)
            await _warn_of_loop(context)
        elif not context.summary.queue.keys() - set(context.summary.follows):
            return


async def prepare_turn(context: TurnContext, agent: Agent) -> None:
    """Finishes what an interruption left open, and tells the model what is new since it was last told."""
    fresh = [*await collect_notes(context, agent), *_interruption_notes(context)]
    if not context.summary.open_calls:
        await context.apply_trigger("prepared", *fresh)
        return
    # Nothing may stand between a call and its result.
    await context.apply_trigger("prepared")
    await agent.executor.run_calls(list_open_calls(context), context)
    await context.emit(*fresh)


def _interruption_notes(context: TurnContext) -> list[Fact]:
    """What the model is told when the turn was resumed."""
    times = context.summary.resumed
    if not times:
        return []
    text = (
        f"Sylph was stopped in the middle of this turn and has gone on from its log ({times} of {MOST_RESUMES} times). "
        "Calls that were under way have their true result, or say that it is unknown. Do not repeat what was done."
    )
    return [facts.ContextAdded(topic=INTERRUPTION, text=text)]


async def collect_notes(context: TurnContext, agent: Agent) -> list[Fact]:
    summary = context.summary
    situation = PrepareContext(
        session=summary.id,
        workspace=summary.workspace,
        mode=summary.mode,
        model=summary.model,
        now=context.now,
        chat_only=is_chat_only(agent.gateway.model_info(_main_model(context, agent))),
        last_notes=summary.told,
    )
    found: list[ContextNote] = []
    for step in agent.plugin.prepare:
        found += await step(situation)
    # What was told is in the log without its secrets.
    told = [(note.topic, context.redactor.redact_text(note.text)) for note in found]
    return [facts.ContextAdded(topic=topic, text=text) for topic, text in told if summary.told.get(topic, "") != text]


async def ask_model(context: TurnContext, agent: Agent) -> ModelReply:
    """One question to the model; what is too much for its window is compacted and asked again, once."""
    window = agent.gateway.model_info(_main_model(context, agent)).window or ASSUMED_WINDOW
    if compaction.needs_compaction(context.history, window, agent.limits.compaction_limits):
        await compact_session(context, agent, "the window fills up")
    may_squeeze = True
    while True:
        call = _build_call(context, agent)
        try:
            answer = await agent.gateway.call_model(call, _build_reporter(context, agent))
        except ProviderError as error:
            if (
                error.failure == "overflow"
                and may_squeeze
                and await compact_session(context, agent, "too much for the model")
            ):
                may_squeeze = False
            else:
                await _fall_back(context, agent, call, error)
            continue
        if call.request.system == system_prompt.CHAT_PROMPT:
            answer = _drop_calls(answer)
        async with agent.gateway.settle_on_exit(answer, _build_reporter(context, agent)):
            await _record_answer(context, answer)
        if answer.reply.finish == "filtered":
            raise ProviderError("refusal", "The provider's filter stopped the answer.", next=["Say it differently."])
        return answer.reply


async def _fall_back(context: TurnContext, agent: Agent, call: ModelCall, error: ProviderError) -> None:
    """Has another model take over for the rest of the turn; raises the error where none can take all of it."""
    if error.shown or error.failure not in FALLBACK_FAILURES:
        raise error
    choice = agent.routes.choose_fallback(agent.gateway, call.request, context.summary)
    if choice.to or choice.passed:
        fell = facts.ModelFellBack(model=call.model, to=choice.to, trouble=error.trouble, passed=choice.passed)
        await context.emit(fell)
    if not choice.to:
        raise no_fallback_error(error, choice)


async def compact_session(context: TurnContext, agent: Agent, why: str, *, after: StateTrigger = "compacted") -> bool:
    """Compacts; False where that was not possible, and then nothing was dropped."""
    cut = choose_compaction(context, agent)
    if cut is None:
        return False
    await context.wait_while_paused()
    await context.apply_trigger("compact")
    try:
        made = await compaction.compact_history(
            context.history,
            cut,
            _compaction_window(context, agent),
            why,
            lambda ask, text: _summarize_text(context, agent, ask, text),
        )
    except (CompactionError, ProviderError) as error:
        await context.apply_trigger(after, facts.CompactionFailed(why=why, trouble=error.trouble))
        return False
    await context.apply_trigger(after, made)
    await context.emit(*await collect_notes(context, agent))
    return True


def choose_compaction(context: TurnContext, agent: Agent) -> compaction.CompactionRange | None:
    return compaction.choose_range(context.history, _compaction_window(context, agent), agent.limits.compaction_limits)


def _compaction_window(context: TurnContext, agent: Agent) -> int:
    """What both the model of the conversation and the one that condenses it can read."""
    models = {_main_model(context, agent), agent.routes.model_for("background", context.summary)}
    known = [window for model in models if (window := agent.gateway.model_info(model).window)]
    return min(known) if known else min(context.history.estimate_tokens(), ASSUMED_WINDOW)


async def _summarize_text(context: TurnContext, agent: Agent, ask: str, text: str) -> str:
    model = agent.routes.model_for("background", context.summary)
    request = ModelRequest(model=_bare_name(model), system=ask, messages=(Message("user", text),))
    call = ModelCall(
        model=model,
        request=request,
        role="background",
        round=context.summary.rounds,
        priority=BACKGROUND,
        budget_owner=budget_owner_of(context.summary),
    )
    reporter = CallReporter(emit=context.record_call_fact, show=lambda _: None)
    answer = await agent.gateway.call_model(call, reporter)
    async with agent.gateway.settle_on_exit(answer, reporter):
        await context.emit(_response_fact(answer, role="background"))
    return answer.reply.text


def _build_reporter(context: TurnContext, agent: Agent) -> CallReporter:
    def show(signal: Signal) -> None:
        if isinstance(signal, signals.ArgsDelta):
            # The model still writes the arguments: time to get ready for the command it is about to order.
            agent.executor.prewarm_tool(signal.name, context.summary.workspace)
        context.publish_signal(signal)

    return CallReporter(emit=context.record_call_fact, show=show)


def _build_call(context: TurnContext, agent: Agent) -> ModelCall:
    model = _main_model(context, agent)
    chat_only = is_chat_only(agent.gateway.model_info(model))
    request = ModelRequest(
        model=_bare_name(model),
        system=system_prompt.CHAT_PROMPT if chat_only else agent.system,
        messages=context.history.build_messages(),
        tools=() if chat_only else agent.executor.specs,
        family=context.summary.root,
        image=context.load_image,
        **_format_options(context.summary.form),
    )
    return ModelCall(
        model=model,
        request=request,
        round=context.summary.rounds + 1,
        head=agent.chat_head if chat_only else agent.head,
        last_prompt=context.summary.prompt,
        moved=context.summary.moved,
        budget_owner=budget_owner_of(context.summary),
    )


def _format_options(form: AnswerFormat | None) -> dict[str, Any]:
    """What a request is told of how its answer is wanted."""
    if form is None:
        return {}
    schema = msgspec.json.decode(form.schema) if form.schema else None
    return {"max_tokens": form.tokens, "effort": form.effort, "schema": schema}


def is_chat_only(info: ModelInfo) -> bool:
    """Whether the model cannot be trusted with tools, and only chats."""
    return info.calls is False


def _drop_calls(answer: ModelAnswer) -> ModelAnswer:
    """What a model calls that was given no tools is not done."""
    finish = "stop" if answer.reply.finish == "calls" else answer.reply.finish
    return replace(answer, reply=replace(answer.reply, calls=(), finish=finish))


async def _record_answer(context: TurnContext, answer: ModelAnswer) -> None:
    """The answer and its calls, together: a log never holds one without the other."""
    turn, first = context.summary.open_turn, context.summary.calls + 1
    called = [
        facts.ToolCalled(call=call_id(turn, number), name=call.name, arguments=call.arguments)
        for number, call in enumerate(answer.reply.calls, start=first)
    ]
    await context.emit(_response_fact(answer, role="main"), *called)


def _response_fact(answer: ModelAnswer, *, role: str) -> facts.ModelResponded:
    reply: ModelReply = answer.reply
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


def list_open_calls(context: TurnContext) -> Sequence[ToolCall]:
    return [ToolCall(id, call.name, call.arguments) for id, call in context.summary.open_calls.items()]


def _main_model(context: TurnContext, agent: Agent) -> str:
    return agent.routes.model_for(MAIN, context.summary)


def _bare_name(model: str) -> str:
    return model.partition("/")[2]


async def _warn_of_loop(context: TurnContext) -> None:
    """Tells a model that goes in circles. It is not stopped: waiting for something looks the same from outside."""
    rounds = _latest_rounds(context.history, WARN_AT[-1])
    same = next((at for at, past in enumerate(rounds) if past != rounds[0]), len(rounds))
    if same in WARN_AT:
        text = f"The last {same} rounds made the same calls and got the same results. Do something else, or stop."
        await context.emit(facts.ContextAdded(topic=LOOP, text=text))


async def _explain_placeholders(context: TurnContext) -> None:
    """Tells a model what a placeholder is, when it first sees one."""
    if SECRETS in context.summary.told:
        return
    history = context.history
    new = takewhile(lambda entry: entry.kind != "answer", reversed(history.entries))
    seen = (*(entry.message.text for entry in new), history.summary, *history.words, *history.ledger)
    if any(PLACEHOLDER_PATTERN.search(text) for text in seen if PLACEHOLDER_HINT in text):
        text = (
            "⟦secret:KIND:TAG⟧ stands for a secret that you do not see. Write it unchanged where the value belongs, in "
            "calls too: tools get the value, and the user reads it. Do not make up placeholders."
        )
        await context.emit(facts.ContextAdded(topic=SECRETS, text=text))


def _latest_rounds(history: ConversationHistory, count: int) -> list[tuple[list[tuple[str, str]], list[str]]]:
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


def _round_limit_error(rounds: int) -> BudgetSpent:
    return BudgetSpent(
        f"The turn used all of its {rounds} rounds.",
        details={"rounds": rounds},
        next=["Say `go on` to let it continue.", "`limits.rounds` in the config sets how many a turn may have."],
    )
