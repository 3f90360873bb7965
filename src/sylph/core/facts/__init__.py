"""Every fact a session's log can hold, declared once; references, schemas and stream names are made from this."""

from sylph.core.events import Fact
from sylph.core.facts.budget import BUDGET_FACTS
from sylph.core.facts.delivery import DELIVERY_FACTS
from sylph.core.facts.file_change import FILE_FACTS
from sylph.core.facts.model import (
    CompactionFailed,
    CompactionMade,
    ModelFailed,
    ModelFellBack,
    ModelRequested,
    ModelResponded,
)
from sylph.core.facts.session import (
    SessionArchived,
    SessionCreated,
    SessionDeleted,
    SessionErased,
    SessionForked,
    SessionMode,
    SessionModel,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    SessionRole,
    SessionSandbox,
    SessionSeen,
)
from sylph.core.facts.tool_call import Answered, Asked, GrantRevoked, ToolCalled, ToolDecided, ToolFinished, ToolStarted
from sylph.core.facts.turn import (
    ContextAdded,
    HistoryRewound,
    InputCancelled,
    InputDelivered,
    InputReceived,
    PlanUpdated,
    StateChanged,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)

FACTS: tuple[type[Fact], ...] = (
    SessionCreated,
    SessionRenamed,
    SessionForked,
    SessionDeleted,
    SessionRestored,
    SessionArchived,
    SessionPinned,
    SessionSeen,
    SessionErased,
    SessionMode,
    SessionSandbox,
    SessionModel,
    SessionRole,
    InputReceived,
    InputDelivered,
    InputCancelled,
    TurnStarted,
    TurnResumed,
    TurnEnded,
    StateChanged,
    HistoryRewound,
    ContextAdded,
    CompactionMade,
    CompactionFailed,
    ModelRequested,
    ModelResponded,
    ModelFailed,
    ModelFellBack,
    ToolCalled,
    ToolDecided,
    GrantRevoked,
    ToolStarted,
    ToolFinished,
    Asked,
    Answered,
    PlanUpdated,
    *FILE_FACTS,
    *DELIVERY_FACTS,
    *BUDGET_FACTS,
)

FACTS_BY_WIRE: dict[str, type[Fact]] = {fact.wire: fact for fact in FACTS}
