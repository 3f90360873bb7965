"""What a session is and does right now: one small state that lists, doors and the session itself go by."""

import msgspec

from sylph.core import facts
from sylph.core.events import Event, Fact
from sylph.core.facts import budget, delivery
from sylph.core.facts.file_change import FilesRestored, UndoStarted
from sylph.core.facts.tool_call import Answered, Asked
from sylph.core.facts.turn import PlanStep
from sylph.core.messages import AnswerFormat, Usage
from sylph.core.permission.types import Mode, PermissionRule
from sylph.core.text.formatting import first_line
from sylph.engine.folds import causality
from sylph.engine.folds.fold import Fold
from sylph.engine.folds.state_machine import ActivityState

# What a person does with a session in their lists: it says nothing new, and so does not make it the latest.
QUIET_FACTS = (facts.SessionArchived, facts.SessionPinned, facts.SessionRenamed, facts.SessionSeen)


class OpenCall(msgspec.Struct):
    """A call that has no result yet, and how far it came."""

    name: str
    arguments: str
    decided: bool = False
    digest: str = ""
    edited: bool = False
    started: bool = False
    recourse: str = ""
    foreseen: dict[str, str] = {}


class PendingDelivery(msgspec.Struct):
    """A message to a person that is not confirmed yet: how often it was tried, and when the next try is due."""

    parcel: delivery.DeliveryRecorded
    attempts: int = 0
    at: int = 0
    pause: int = 0


class PromptFingerprint(msgspec.Struct):
    """The last request for an answer in the conversation: what the next one has to repeat for a cache to help."""

    model: str
    head: str
    tail: str
    messages: int
    bytes: int


class SessionState(msgspec.Struct):
    id: str = ""
    title: str = ""
    workspace: str = ""
    by: str = ""
    """Who made it, where that was somebody who could not have added its folder."""
    model: str = ""
    mode: Mode = "ask"
    sandbox: bool = True
    dry_run: bool = False
    state: ActivityState = "idle"
    created: int = 0
    updated: int = 0
    seq: int = 0
    turns: int = 0
    open_turn: str = ""
    open_input: str = ""
    open_since: int = 0
    resumed: int = 0
    rounds: int = 0
    calls: int = 0
    inputs: int = 0
    questions: int = 0
    answered: bool = False
    """Whether the model has said all it had to say in this turn."""
    open_calls: dict[str, OpenCall] = {}
    asked: dict[str, Asked] = {}
    answers: dict[str, Answered] = {}
    queue: dict[str, str] = {}
    follows: list[str] = []
    dry_inputs: list[str] = []
    forms: dict[str, AnswerFormat] = {}
    form: AnswerFormat | None = None
    """How the answer of the open turn is wanted."""
    keys: dict[str, str] = {}
    grants: list[PermissionRule] = []
    told: dict[str, str] = {}
    origins: dict[str, int] = {}
    usage: Usage = msgspec.field(default_factory=Usage)
    cost: int | None = None
    guessed: int = 0
    """How much of the cost is the most that calls without an answer can have been."""
    budget: int | None = None
    label: str = ""
    warned: list[str] = []
    context_tokens: int = 0
    window: int = 0
    parent: str = ""
    root: str = ""
    forked_at: int = 0
    deleted: bool = False
    archived: bool = False
    pinned: bool = False
    seen: int = 0
    """Up to which fact a person has seen it, as far as a door has said so."""
    ended: int = 0
    """The fact that ended the last turn."""
    plan: tuple[PlanStep, ...] = ()
    outbox: dict[str, PendingDelivery] = {}
    pid: int = 0
    undoing: str = ""
    roles: dict[str, str] = {}
    substitute: str = ""
    """The model that has taken over for the rest of the turn, as the session's own did not answer."""
    fallen: list[str] = []
    """The models that did not answer in this turn."""
    prompt: PromptFingerprint | None = None
    moved: str = ""
    """What has changed the history since the last request, other than by adding to it."""


def apply_event(state: SessionState, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one flat table of what each fact means
    state.seq = event.seq
    if not isinstance(event.body, QUIET_FACTS):
        state.updated = event.ts
    if isinstance(event.body, Fact) and (name := causality.fact_ref(event.body)):
        state.origins[name] = event.seq
    match event.body:
        # What most logs are made of comes first: the cases are tried one after the other.
        case facts.ToolCalled(call=call, name=name, arguments=arguments):
            state.calls += 1
            state.open_calls[call] = OpenCall(name, arguments)
        case facts.ToolDecided() as body:
            _apply_decision(state, body)
        case facts.ToolStarted(call=call, recourse=recourse, foreseen=foreseen):
            if open_call := state.open_calls.get(call):
                open_call.started, open_call.recourse, open_call.foreseen = True, recourse, foreseen
        case facts.ToolFinished(call=call):
            state.open_calls.pop(call, None)
        case facts.StateChanged(to=to):
            state.state = to  # pyright: ignore[reportAttributeAccessIssue] - a newer version may know more states
        case facts.ModelRequested(role="main") as body:
            state.rounds, state.moved = body.round, ""
            state.prompt = PromptFingerprint(body.model, body.head, body.tail, body.messages, body.bytes)
        case facts.ModelResponded() as body:
            _add_usage(state, body)
        case facts.SessionCreated() as body:
            _apply_created(state, event, body)
        case facts.SessionForked(parent=parent, at=at, root=root):
            state.id, state.parent, state.forked_at, state.root = event.session, parent, at, root
            state.created, state.deleted, state.queue, state.follows = event.ts, False, {}, []
            state.archived = state.pinned = False
            state.asked, state.open_calls, state.undoing, state.outbox = {}, {}, "", {}
            state.forms, state.form = {}, None
            state.usage, state.cost, state.guessed, state.warned = Usage(), None, 0, []
        case facts.SessionRenamed(title=title):
            state.title = title
        case facts.SessionDeleted():
            state.deleted, state.outbox = True, {}
        case facts.SessionRestored():
            state.deleted = False
        case facts.SessionArchived(archived=archived):
            state.archived = archived
        case facts.SessionPinned(pinned=pinned):
            state.pinned = pinned
        case facts.SessionSeen(upto=upto):
            state.seen = upto
        case facts.SessionMode(mode=mode):
            state.mode = mode
        case facts.SessionSandbox(on=on):
            state.sandbox = on
        case facts.SessionModel(model=model):
            state.model = model
        case budget.SessionBudget(money=money):
            state.budget = money
        case budget.BudgetWarned() as body:
            state.warned.append(body.dedup_key)
        case facts.SessionRole(role=role, model=model):
            state.roles = {**state.roles, role: model} if model else _without_role(state.roles, role)
        case facts.InputReceived() as body:
            _apply_input(state, body)
        case facts.InputDelivered(id=id) | facts.InputCancelled(id=id):
            state.answered = state.answered and isinstance(event.body, facts.InputCancelled)
            _remove_queued(state, id)
        case facts.TurnStarted(input=input):
            _apply_turn_start(state, event, input)
        case facts.TurnResumed(attempt=attempt):
            # Whoever waited for these answers is dead; the turn asks anew what it still needs to know.
            state.resumed, state.asked = attempt, {}
        case facts.TurnEnded():
            state.open_turn = state.open_input = ""
            state.dry_run, state.form, state.ended = False, None, event.seq
            state.asked, state.answers, state.open_calls = {}, {}, {}
            kept = state.queue.keys() | state.outbox.keys()
            state.origins = {name: seq for name, seq in state.origins.items() if name in kept}
        case facts.ContextAdded(topic=topic, text=text):
            state.told[topic] = text
        case facts.CompactionMade(tokens_after=tokens):
            state.told, state.context_tokens, state.moved = {}, tokens, "compaction"
        case facts.HistoryRewound():
            state.told, state.moved = {}, "retry"
        case facts.ModelFellBack(role="main", model=model, to=to):
            state.substitute = to or state.substitute
            state.fallen.append(model)
        case facts.ModelFailed(usage=Usage() as usage, cost=cost):
            state.usage, state.guessed = state.usage + usage, state.guessed + (cost or 0)
            state.cost = state.cost if cost is None else (state.cost or 0) + cost
        case facts.GrantRevoked(rule=rule):
            state.grants = [each for each in state.grants if each != rule]
        case facts.Asked(id=id) as body:
            state.questions += 1
            state.asked[id] = body
        case facts.Answered(id=id) as body:
            if asked := state.asked.pop(id, None):
                state.answers.update(dict.fromkeys(question_keys(asked), body))
        case facts.PlanUpdated(steps=steps):
            state.plan = steps
        case UndoStarted(id=id):
            state.undoing = id
        case FilesRestored():
            state.undoing = ""
        case _:
            _apply_delivery(state, event)


def question_keys(asked: Asked) -> list[str]:
    """What makes two questions the same: they belong to one call, and ask for its approval or say the same."""
    if asked.kind == "approval":
        return [approval_key(call) for call in asked.calls or (asked.call,)]
    return [f"{asked.call}\0{asked.question}"]


def approval_key(call: str) -> str:
    return f"{call}\0"


def _apply_created(state: SessionState, event: Event, body: facts.SessionCreated) -> None:
    state.id = state.root = event.session
    state.created, state.workspace, state.model = event.ts, body.workspace, body.model
    state.mode, state.title, state.sandbox, state.label = body.mode, body.title, body.sandbox, body.label
    state.by = body.by


def _apply_input(state: SessionState, body: facts.InputReceived) -> None:
    state.inputs += 1
    state.queue[body.id] = body.text
    if body.delivery == "follow":
        state.follows.append(body.id)
    if body.dry_run:
        state.dry_inputs.append(body.id)
    if body.form:
        state.forms[body.id] = body.form
    if body.key:
        state.keys[body.key] = body.id
    if not state.title:
        state.title = first_line(body.text, 60)


def _without_role(roles: dict[str, str], role: str) -> dict[str, str]:
    return {name: model for name, model in roles.items() if name != role}


def _remove_queued(state: SessionState, id: str) -> None:
    state.queue.pop(id, None)
    state.forms.pop(id, None)
    for waiting in (state.follows, state.dry_inputs):
        if id in waiting:
            waiting.remove(id)


def _apply_turn_start(state: SessionState, event: Event, input: str) -> None:
    state.dry_run, state.form = input in state.dry_inputs, state.forms.get(input)
    _remove_queued(state, input)
    state.turns += 1
    state.open_turn, state.open_input, state.open_since = event.turn, input, event.ts
    state.resumed = state.rounds = state.calls = 0
    state.substitute, state.fallen = "", []
    state.answered = False


def _apply_decision(state: SessionState, body: facts.ToolDecided) -> None:
    state.grants += [rule for rule in body.grants if rule not in state.grants]
    if call := state.open_calls.get(body.call):
        call.decided, call.digest = body.decision == "allow", body.digest
        call.edited = call.edited or bool(body.arguments)
        call.arguments = body.arguments or call.arguments


def _add_usage(state: SessionState, body: facts.ModelResponded) -> None:
    state.usage = state.usage + body.usage
    if body.cost is not None:
        state.cost = (state.cost or 0) + body.cost
    if body.role == "main":
        state.answered = body.calls == 0 and body.finish != "filtered"
    if body.role == "main" and body.usage.input:
        state.context_tokens = body.usage.input + body.usage.output


def _apply_delivery(state: SessionState, event: Event) -> None:
    match event.body:
        case delivery.DeliveryRecorded(id=id) as body:
            state.outbox[id] = PendingDelivery(body)
        case delivery.DeliveryAttempted(id=id, attempt=attempt):
            if waiting := state.outbox.get(id):
                waiting.attempts = attempt
        case delivery.DeliveryFailed(id=id, retry_ms=int() as pause):
            if waiting := state.outbox.get(id):
                waiting.at, waiting.pause = event.ts + pause, pause
        case delivery.DeliveryConfirmed(id=id) | delivery.DeliveryFailed(id=id):
            state.outbox.pop(id, None)
            if not state.open_turn:
                state.origins.pop(id, None)
        case _:
            pass


SESSION_FOLD: Fold[SessionState] = Fold("summary", 4, SessionState, apply_event)
