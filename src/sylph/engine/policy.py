"""May this call run? A pure decision over mode, effect, risk, rules and grants, with the way that led to it."""

from typing import NamedTuple

from msgspec import Struct

from sylph.core.facts import Decision, Effect, Mode
from sylph.core.permission import Rule
from sylph.core.rules import Rules, Subject, first, noted, stricter, wide
from sylph.core.tool import Judged

MODES: dict[Mode, dict[Effect, Decision]] = {
    "trust": {"read": "allow", "write": "allow", "external": "allow", "self": "allow"},
    "auto_noselfmod": {"read": "allow", "write": "allow", "external": "allow", "self": "ask"},
    "ask": {"read": "allow", "write": "ask", "external": "ask", "self": "ask"},
    "sandbox": {"read": "allow", "write": "ask", "external": "ask", "self": "deny"},
    "plan": {"read": "allow", "write": "deny", "external": "deny", "self": "deny"},
}

LOOSE: tuple[Mode, ...] = ("trust", "auto_noselfmod", "ask", "sandbox", "plan")
"""Modes from the one that allows most to the one that allows least."""

MEANING: dict[Effect, str] = {
    "read": "only looks",
    "write": "changes files or runs a command",
    "external": "reaches outside of this machine",
    "self": "changes Sylph itself",
}


NONE = Rules()


class Guard(NamedTuple):
    """A place that is protected whatever the tool; `path` is where the call touches it."""

    kind: str
    decision: Decision
    path: str
    why: str


class Step(NamedTuple):
    """One consideration: who spoke, what it said, and why."""

    by: str
    decision: Decision
    reason: str


class Ruling(NamedTuple):
    decision: Decision
    reason: str
    by: str
    path: tuple[Step, ...] = ()


class Case(Struct, frozen=True, kw_only=True):
    """Everything a decision is made from."""

    tool: str
    mode: Mode
    judged: Judged
    workspace: str = ""
    digest: str = ""
    rules: Rules = NONE
    grants: tuple[Rule, ...] = ()
    guards: tuple[Guard, ...] = ()
    confined: bool = True
    """Whether commands run in a sandbox, or the user has said that they need none."""
    command: bool = False
    """Whether it runs commands, also where it cannot be told which."""

    @property
    def subject(self) -> Subject:
        judged = self.judged
        return Subject(
            self.tool, self.workspace, judged.commands, (*judged.reads, *judged.writes), judged.hosts, self.digest
        )


def decide(case: Case) -> Ruling:
    """`allow`, `ask` or `deny`.

    The mode speaks first. A rule or a grant of the user turns its question into a yes, never its no into anything;
    all else only makes the decision stricter: rules that ask or deny, protected places, the way out of the sandbox.
    """
    way = [_mode(case)]
    way += _lifted(case, way[0])
    way += _tightened(case)
    way += _granted(case, way)
    last = _last(way)
    return Ruling(last.decision, last.reason, last.by, tuple(way))


def _mode(case: Case) -> Step:
    effect, risk = case.judged.effect, case.judged.risk
    decision = MODES[case.mode][effect]
    warning = " and is dangerous" if risk == "dangerous" else ""
    return Step("mode", decision, f"mode `{case.mode}`: what {MEANING[effect]}{warning} is {SAID[decision]}")


def _lifted(case: Case, mode: Step) -> list[Step]:
    """What the user's own rules say."""
    dangerous = case.judged.risk == "dangerous"
    # What is too wide for a dangerous call does not decide about it: those after it may.
    fit = tuple(rule for rule in case.rules.user if not (dangerous and rule.decision == "allow" and wide(rule)))
    passed = first(case.rules.user, case.subject) if dangerous else None
    steps: list[Step] = []
    if passed and passed.decision == "allow" and wide(passed):
        steps.append(Step("rule", mode.decision, f"{_rule(passed, 'your rule')}: too wide for what is dangerous"))
    rule = first(fit, case.subject)
    if rule and (rule.decision != "allow" or mode.decision == "ask"):
        steps.append(Step("rule", rule.decision, _rule(rule, "your rule")))
    return steps


def _tightened(case: Case) -> list[Step]:
    """What only ever makes it stricter."""
    steps = [Step("guard", guard.decision, guard.why) for guard in case.guards if not _opened(case, guard)]
    strict = tuple(rule for rule in case.rules.project if rule.decision != "allow")
    if rule := first(strict, case.subject):
        steps.append(Step("project", rule.decision, _rule(rule, "the project's rule")))
    if case.rules.trouble and case.judged.effect != "read":
        steps.append(Step("project", "ask", case.rules.trouble))
    if case.command and (not case.judged.commands or case.judged.unsure) and _about_commands(case):
        steps.append(Step("rule", "ask", "which commands it runs cannot be told, so your rules cannot be applied"))
    if case.command and not case.confined and case.judged.effect != "read":
        steps.append(Step("sandbox", "ask", "no sandbox is to be had here, so each command is asked about"))
    if case.judged.outside:
        steps.append(Step("sandbox", "ask", "it wants to leave the sandbox"))
    return steps


def _granted(case: Case, way: list[Step]) -> list[Step]:
    """What the user allowed for the session: a wide yes answers only the mode's own question."""
    if _last(way).decision != "ask" or case.judged.outside:
        return []
    rule = first(case.grants, case.subject)
    if rule is None:
        return []
    own = all(step.decision != "ask" or step.by == "mode" for step in way)
    if wide(rule) and not (own and case.judged.risk != "dangerous"):
        return []
    return [Step("grant", "allow", f"you allowed this for the session ({noted(rule)})")]


def _last(way: list[Step]) -> Step:
    """The step that decides: the mode's or what lifted it, else the first of the strictest after it."""
    basis = way[0]
    for step in way[1:]:
        if step.decision == "allow" and step.by in ("rule", "grant"):
            basis = step if basis.decision == "ask" else basis
        elif stricter(basis.decision, step.decision) != basis.decision:
            basis = step
    return basis


def _opened(case: Case, guard: Guard) -> bool:
    """A secret can be opened by a rule of the user that names its place; nothing else that is protected can."""
    if guard.kind != "secret" or case.command:
        return False
    named = [rule for rule in case.rules.user if rule.path]
    rule = first(named, Subject(case.tool, case.workspace, (), (guard.path,)))
    return rule is not None and rule.decision == "allow"


def _about_commands(case: Case) -> bool:
    rules = (*case.rules.user, *case.rules.project)
    return any(rule.command and rule.decision != "allow" for rule in rules)


def _rule(rule: Rule, whose: str) -> str:
    return f"{whose} `{noted(rule)}`" + (f" ({rule.why})" if rule.why else "")


SAID: dict[Decision, str] = {"allow": "allowed", "ask": "asked about", "deny": "denied"}
