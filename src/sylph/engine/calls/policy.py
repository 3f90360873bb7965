"""May this call run? A pure decision over mode, effect, risk, rules and grants, with the way that led to it."""

from typing import NamedTuple

from msgspec import Struct

from sylph.core.permission.rules import (
    RuleSubject,
    WorkspaceRules,
    find_rule,
    format_for_log,
    is_broad,
    stricter_decision,
)
from sylph.core.permission.types import Decision, Effect, Mode, PermissionRule
from sylph.core.tool import CallAssessment

MODE_DECISIONS: dict[Mode, dict[Effect, Decision]] = {
    "trust": {"read": "allow", "write": "allow", "external": "allow", "self": "allow"},
    "auto_noselfmod": {"read": "allow", "write": "allow", "external": "allow", "self": "ask"},
    "ask": {"read": "allow", "write": "ask", "external": "ask", "self": "ask"},
    "sandbox": {"read": "allow", "write": "ask", "external": "ask", "self": "deny"},
    "plan": {"read": "allow", "write": "deny", "external": "deny", "self": "deny"},
}

MODES_BY_FREEDOM: tuple[Mode, ...] = ("trust", "auto_noselfmod", "ask", "sandbox", "plan")
"""Modes from the one that allows most to the one that allows least."""

EFFECT_TEXT: dict[Effect, str] = {
    "read": "only looks",
    "write": "changes files or runs a command",
    "external": "reaches outside of this machine",
    "self": "changes Sylph itself",
}


NO_RULES = WorkspaceRules()


class PolicyGuard(NamedTuple):
    """A place that is protected whatever the tool; `path` is where the call touches it."""

    kind: str
    decision: Decision
    path: str
    why: str


class PolicyStep(NamedTuple):
    """One consideration: who spoke, what it said, and why."""

    by: str
    decision: Decision
    reason: str


class PolicyDecision(NamedTuple):
    decision: Decision
    reason: str
    by: str
    path: tuple[PolicyStep, ...] = ()


class PolicyInput(Struct, frozen=True, kw_only=True):
    """Everything a decision is made from."""

    tool: str
    mode: Mode
    judged: CallAssessment
    workspace: str = ""
    digest: str = ""
    rules: WorkspaceRules = NO_RULES
    grants: tuple[PermissionRule, ...] = ()
    guards: tuple[PolicyGuard, ...] = ()
    confined: bool = True
    """Whether commands run in a sandbox, or the user has said that they need none."""
    command: bool = False
    """Whether it runs commands, also where it cannot be told which."""

    @property
    def subject(self) -> RuleSubject:
        judged = self.judged
        return RuleSubject(
            self.tool, self.workspace, judged.commands, (*judged.reads, *judged.writes), judged.hosts, self.digest
        )


def evaluate_policy(case: PolicyInput) -> PolicyDecision:
    """`allow`, `ask` or `deny`.

    The mode speaks first. A rule or a grant of the user turns its question into a yes, never its no into anything;
    all else only makes the decision stricter: rules that ask or deny, protected places, the way out of the sandbox.
    """
    way = [_mode_step(case)]
    way += _user_rule_steps(case, way[0])
    way += _restriction_steps(case)
    way += _grant_steps(case, way)
    last = _deciding_step(way)
    return PolicyDecision(last.decision, last.reason, last.by, tuple(way))


def _mode_step(case: PolicyInput) -> PolicyStep:
    effect, risk = case.judged.effect, case.judged.risk
    decision = MODE_DECISIONS[case.mode][effect]
    warning = " and is dangerous" if risk == "dangerous" else ""
    return PolicyStep(
        "mode", decision, f"mode `{case.mode}`: what {EFFECT_TEXT[effect]}{warning} is {DECISION_TEXT[decision]}"
    )


def _user_rule_steps(case: PolicyInput, mode: PolicyStep) -> list[PolicyStep]:
    """What the user's own rules say."""
    dangerous = case.judged.risk == "dangerous"
    # What is too wide for a dangerous call does not decide about it: those after it may.
    fit = tuple(rule for rule in case.rules.user if not (dangerous and rule.decision == "allow" and is_broad(rule)))
    passed = find_rule(case.rules.user, case.subject) if dangerous else None
    steps: list[PolicyStep] = []
    if passed and passed.decision == "allow" and is_broad(passed):
        steps.append(
            PolicyStep("rule", mode.decision, f"{_describe_rule(passed, 'your rule')}: too wide for what is dangerous")
        )
    rule = find_rule(fit, case.subject)
    if rule and (rule.decision != "allow" or mode.decision == "ask"):
        steps.append(PolicyStep("rule", rule.decision, _describe_rule(rule, "your rule")))
    return steps


def _restriction_steps(case: PolicyInput) -> list[PolicyStep]:
    """What only ever makes it stricter."""
    steps = [PolicyStep("guard", guard.decision, guard.why) for guard in case.guards if not _is_unlocked(case, guard)]
    strict = tuple(rule for rule in case.rules.project if rule.decision != "allow")
    if rule := find_rule(strict, case.subject):
        steps.append(PolicyStep("project", rule.decision, _describe_rule(rule, "the project's rule")))
    if case.rules.trouble and case.judged.effect != "read":
        steps.append(PolicyStep("project", "ask", case.rules.trouble))
    if case.command and (not case.judged.commands or case.judged.unsure) and _has_command_rules(case):
        steps.append(
            PolicyStep("rule", "ask", "which commands it runs cannot be told, so your rules cannot be applied")
        )
    if case.command and not case.confined and case.judged.effect != "read":
        steps.append(PolicyStep("sandbox", "ask", "no sandbox is to be had here, so each command is asked about"))
    if case.judged.outside:
        steps.append(PolicyStep("sandbox", "ask", "it wants to leave the sandbox"))
    return steps


def _grant_steps(case: PolicyInput, way: list[PolicyStep]) -> list[PolicyStep]:
    """What the user allowed for the session: a wide yes answers only the mode's own question."""
    if _deciding_step(way).decision != "ask" or case.judged.outside:
        return []
    rule = find_rule(case.grants, case.subject)
    if rule is None:
        return []
    own = all(step.decision != "ask" or step.by == "mode" for step in way)
    if is_broad(rule) and not (own and case.judged.risk != "dangerous"):
        return []
    return [PolicyStep("grant", "allow", f"you allowed this for the session ({format_for_log(rule)})")]


def _deciding_step(way: list[PolicyStep]) -> PolicyStep:
    """The step that decides: the mode's or what lifted it, else the first of the strictest after it."""
    basis = way[0]
    for step in way[1:]:
        if step.decision == "allow" and step.by in ("rule", "grant"):
            basis = step if basis.decision == "ask" else basis
        elif stricter_decision(basis.decision, step.decision) != basis.decision:
            basis = step
    return basis


def _is_unlocked(case: PolicyInput, guard: PolicyGuard) -> bool:
    """A secret can be opened by a rule of the user that names its place; nothing else that is protected can."""
    if guard.kind != "secret" or case.command:
        return False
    named = [rule for rule in case.rules.user if rule.path]
    rule = find_rule(named, RuleSubject(case.tool, case.workspace, (), (guard.path,)))
    return rule is not None and rule.decision == "allow"


def _has_command_rules(case: PolicyInput) -> bool:
    rules = (*case.rules.user, *case.rules.project)
    return any(rule.command and rule.decision != "allow" for rule in rules)


def _describe_rule(rule: PermissionRule, whose: str) -> str:
    return f"{whose} `{format_for_log(rule)}`" + (f" ({rule.why})" if rule.why else "")


DECISION_TEXT: dict[Decision, str] = {"allow": "allowed", "ask": "asked about", "deny": "denied"}
