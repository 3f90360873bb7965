"""Rules as doors show them, and what a new one must be."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sylph.config.rules_file import FileRuleStore
from sylph.core.clock import SystemClock
from sylph.core.errors import UserError
from sylph.core.messages import ToolCall
from sylph.core.permission.rules import WorkspaceRules, check_rule, unexpired_rules
from sylph.core.permission.types import Decision, Effect, Mode, PermissionRule, Risk
from sylph.engine.calls.explain import DecisionPreview
from sylph.engine.calls.policy import PolicyStep


class CallDecisionView(Struct, frozen=True, kw_only=True):
    """What would be decided about a call, and the way to it."""

    tool: str
    arguments: Any
    mode: Mode
    effect: Effect
    risk: Risk
    why: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    hosts: tuple[str, ...]
    commands: tuple[str, ...]
    decision: Decision
    reason: str
    by: str
    path: list[dict[str, str]]


def require_sensible_rule(rule: PermissionRule) -> None:
    """Raises UserError for a rule that nobody can mean."""
    if not (rule.command or rule.path or rule.host) and rule.tool == "*":
        raise UserError(
            f"That would {rule.decision} every call there is.",
            next=["name a --tool, --path, --command or --host", "modes are for all calls: sylph --mode plan"],
        )
    if wrong := check_rule(rule):
        raise UserError(f"That is not a rule: {wrong}.", next=["sylph policy add --help"])
    if rule.until and not unexpired_rules([rule], SystemClock().now()):
        raise UserError(f"{rule.until} is over already.", next=["give a day to come, as 2030-01-31"])


def list_rules(
    told: Sequence[PermissionRule], book: FileRuleStore, rules: WorkspaceRules
) -> list[tuple[str, int, PermissionRule]]:
    """Every rule in its order, with where it is from; those that are remembered have a number."""
    return [
        *(("config", 0, rule) for rule in told),
        *(("remembered", number, rule) for number, rule in enumerate(book.remembered_rules(), 1)),
        *(("project", 0, rule) for rule in rules.project),
    ]


def make_decision_view(made: ToolCall, found: DecisionPreview, mode: Mode) -> CallDecisionView:
    judged, ruling = found.judged, found.ruling
    return CallDecisionView(
        tool=made.name,
        arguments=msgspec.Raw(made.arguments.encode()),
        mode=mode,
        effect=judged.effect,
        risk=judged.risk,
        why=judged.why,
        reads=judged.reads,
        writes=judged.writes,
        hosts=judged.hosts,
        commands=judged.commands,
        decision=ruling.decision,
        reason=ruling.reason,
        by=ruling.by,
        path=[_step_view(step) for step in ruling.path],
    )


def _step_view(step: PolicyStep) -> dict[str, str]:
    return {"by": step.by, "decision": step.decision, "reason": step.reason}
