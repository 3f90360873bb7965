"""Which fact led to which: a table over types, so that a log can be read backwards."""

from sylph.core import facts
from sylph.core.events import Fact
from sylph.core.facts.delivery import DeliveryAttempted, DeliveryConfirmed, DeliveryFailed, DeliveryRecorded
from sylph.core.facts.file_change import FilesChanged

TURN_REF, MODEL_REF = "turn", "model"


def fact_ref(fact: Fact) -> str:
    """What later facts call this one by; empty if none refers to it."""
    match fact:
        case facts.InputReceived(id=id) | facts.Asked(id=id) | DeliveryRecorded(id=id):
            return id
        case facts.ToolCalled(call=call):
            return call
        case facts.TurnStarted():
            return TURN_REF
        case facts.ModelRequested():
            return MODEL_REF
        case _:
            return ""


def cause_ref(fact: Fact) -> str:  # noqa: PLR0911 - one flat table
    """The name of the fact that led to this one."""
    match fact:
        case facts.TurnStarted(input=id) | facts.InputDelivered(id=id) | facts.InputCancelled(id=id):
            return id
        case facts.Answered(id=id) | DeliveryAttempted(id=id) | DeliveryConfirmed(id=id) | DeliveryFailed(id=id):
            return id
        case DeliveryRecorded(call=call) if call:
            return call
        case facts.ToolDecided(call=call) | facts.ToolStarted(call=call) | facts.ToolFinished(call=call):
            return call
        case FilesChanged(call=call):
            return call
        case facts.Asked(call=call) if call:
            return call
        case facts.ModelResponded() | facts.ModelFailed() | facts.ModelFellBack() | facts.ToolCalled():
            return MODEL_REF
        case _:
            return TURN_REF
