"""Whether calls may run: decided by the policy, and asked where a person has to say so."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core import facts
from sylph.core.errors import CallRefused, ToolError
from sylph.core.facts.tool_call import Answered, Asked
from sylph.core.messages import ToolCall
from sylph.core.permission.path_policy import PathPolicy
from sylph.core.permission.rules import (
    EmptyRuleStore,
    RuleStore,
    WorkspaceRules,
    format_for_log,
    format_until,
    unexpired_rules,
)
from sylph.core.permission.types import PermissionRule, Risk
from sylph.core.text.formatting import count_noun
from sylph.core.tool import CallAssessment
from sylph.engine.calls import grant_scope
from sylph.engine.calls.judged_call import JudgedCall, call_digest
from sylph.engine.calls.path_guard import find_guards, raise_risk
from sylph.engine.calls.policy import PolicyDecision, PolicyGuard, PolicyInput, evaluate_policy
from sylph.engine.calls.session_port import SessionPort

YES, SESSION, ALWAYS, EDIT, NO = "yes", "session", "always", "edit", "no"
HOUR = 3_600_000
RISKS: tuple[Risk, ...] = ("safe", "caution", "dangerous")

PolicyDecider = Callable[[str, PolicyInput], PolicyDecision]
"""Decides about a call, given its id."""


class ApprovalSettings(Struct, frozen=True, kw_only=True):
    """How a person is asked, and how long their word counts."""

    rulebook: RuleStore = field(default_factory=EmptyRuleStore)
    places: PathPolicy | None = None
    """Where files are that are protected whatever the tool."""
    arbiter: PolicyDecider = lambda _, case: evaluate_policy(case)
    confined: Callable[[], bool] = lambda: True
    wait_seconds: float | None = 24 * 3600.0
    """How long a question stands before nobody's silence counts as no."""
    session_hours: float = 24.0
    """How long a yes for the session counts."""


class PermittedCall(NamedTuple):
    """A call that may run, as it may, and the fact that says so."""

    ready: JudgedCall
    decided: facts.ToolDecided


class _PreviewedCall(NamedTuple):
    ready: JudgedCall
    detail: str


class _ApprovalOutcome(NamedTuple):
    ruling: PolicyDecision
    grants: tuple[PermissionRule, ...] = ()
    remembered: tuple[PermissionRule, ...] = ()
    arguments: str = ""


class PermissionChecker:
    def __init__(self, consent: ApprovalSettings, again: Callable[[ToolCall, SessionPort], JudgedCall]) -> None:
        self.consent, self._again = consent, again

    def decide_call(self, ready: JudgedCall, desk: SessionPort) -> PolicyDecision:
        """What would be decided about this call now."""
        return self.consent.arbiter(ready.call.id, self.policy_input(ready, desk))

    def policy_input(self, ready: JudgedCall, desk: SessionPort) -> PolicyInput:
        rules = self.consent.rulebook.read(ready.context.workspace)
        # The time of the newest fact, so that a replay decides as it was decided then.
        now = desk.summary.updated
        return PolicyInput(
            tool=ready.tool.name,
            mode=desk.summary.mode,
            judged=ready.judged,
            workspace=str(ready.context.workspace),
            digest=call_digest(ready.call),
            rules=WorkspaceRules(unexpired_rules(rules.user, now), unexpired_rules(rules.project, now), rules.trouble),
            grants=unexpired_rules(desk.summary.grants, now),
            guards=self._find_path_guards(ready),
            # Found out only for what runs a command: it takes a moment. Who has switched it off wants no questions.
            confined=not ready.runs_commands or not desk.summary.sandbox or self.consent.confined(),
            command=ready.runs_commands,
        )

    def _find_path_guards(self, ready: JudgedCall) -> tuple[PolicyGuard, ...]:
        places = self.consent.places
        return find_guards(ready.judged, places, command=ready.runs_commands) if places else ()

    def raise_path_risk(self, judged: CallAssessment) -> CallAssessment:
        """The judgement of a tool, with what the places it touches make of it."""
        return raise_risk(judged, self.consent.places) if self.consent.places else judged

    async def permit_call(self, ready: JudgedCall, desk: SessionPort) -> PermittedCall:
        """Returns for a call that may run; for one that may not, the reason is written down and raised."""
        known = desk.summary.open_calls.get(ready.call.id)
        ruling = self.decide_call(ready, desk)
        said = _ApprovalOutcome(ruling)
        if known and known.decided and known.digest == call_digest(ready.call):
            # Decided before the process died: the same call with the same arguments is not asked about twice.
            said = _ApprovalOutcome(PolicyDecision("allow", "allowed before the interruption", "log"))
        elif ruling.decision == "ask" and desk.summary.dry_run:
            said = _ApprovalOutcome(PolicyDecision("allow", "a dry run changes nothing", "dry_run"))
        elif ruling.decision == "ask":
            said = self._interpret_answer(ready, await self._obtain_answer(ready, desk), desk)
        if said.arguments:
            ready, said = self._apply_edit(ready, said, desk)
        decided = facts.ToolDecided(
            call=ready.call.id,
            decision=said.ruling.decision,
            reason=said.ruling.reason,
            by=said.ruling.by,
            effect=ready.judged.effect,
            risk=ready.judged.risk,
            digest=call_digest(ready.call),
            reach=ready.judged.reach,
            arguments=said.arguments,
            grants=said.grants,
            remembered=said.remembered,
        )
        if said.ruling.decision != "allow":
            await desk.emit(decided)
            raise CallRefused(
                f"{ready.tool.name} was not permitted: {said.ruling.reason}.", next=_suggest_next(said.ruling)
            )
        if said.remembered:
            self.consent.rulebook.remember(said.remembered)
        return PermittedCall(ready, decided)

    async def _obtain_answer(self, ready: JudgedCall, desk: SessionPort) -> Answered:
        return desk.earlier_answer(ready.call.id) or await self._ask_approval(
            [_PreviewedCall(ready, await ready.render_preview())], desk
        )

    async def ask_ahead(self, calls: Iterable[JudgedCall], desk: SessionPort) -> None:
        """Asks about all calls of a round at once, those of one kind together; the answers wait in the log."""
        groups: dict[tuple[str, tuple[PermissionRule, ...]], list[_PreviewedCall]] = {}
        for ready in calls:
            if desk.earlier_answer(ready.call.id) or self.decide_call(ready, desk).decision != "ask":
                continue
            # What cannot be shown yet, or is sure to fail, is seen to when it comes to it.
            with suppress(ToolError):
                shown = _PreviewedCall(ready, await ready.render_preview())
                groups.setdefault((ready.tool.name, self._offered_grants(ready)), []).append(shown)
        if sum(map(len, groups.values())) > 1:
            await asyncio.gather(*(self._ask_approval(group, desk) for group in groups.values()))

    async def _ask_approval(self, group: Sequence[_PreviewedCall], desk: SessionPort) -> Answered:
        first, alone = group[0].ready, len(group) == 1
        grants = self._offered_grants(first)
        always = grant_scope.permanent_rules(first.tool.name, first.judged, call_digest(first.call)) if alone else ()
        offered = {YES: True, SESSION: bool(grants), ALWAYS: bool(always), EDIT: alone, NO: True}
        times = "" if alone else f" {count_noun(len(group), 'time')}"
        return await desk.ask_user(
            lambda id: Asked(
                id=id,
                kind="approval",
                question=f"May {first.tool.name} run{times}?",
                choices=tuple(choice for choice, possible in offered.items() if possible),
                call=first.call.id,
                calls=() if alone else tuple(shown.ready.call.id for shown in group),
                detail="\n".join(filter(None, (shown.detail for shown in group))),
                effect=first.judged.effect,
                risk=_highest_risk(group),
                reach=first.judged.reach,
                grants=grants,
                rules=always,
            ),
            self.consent.wait_seconds,
        )

    def _offered_grants(self, ready: JudgedCall) -> tuple[PermissionRule, ...]:
        by_content = ready.tool.recourse == "by_content"
        place = str(ready.context.workspace)
        return grant_scope.session_grants(
            ready.tool.name, ready.judged, place, call_digest(ready.call), by_content=by_content
        )

    def _interpret_answer(self, ready: JudgedCall, answered: Answered, desk: SessionPort) -> _ApprovalOutcome:
        by = answered.by
        if answered.answer == SESSION:
            until = format_until(desk.summary.updated + round(self.consent.session_hours * HOUR))
            grants = tuple(_with_expiry(rule, until) for rule in self._offered_grants(ready))
            return _ApprovalOutcome(PolicyDecision("allow", "you said yes for the session", by), grants=grants)
        if answered.answer == ALWAYS:
            rules = grant_scope.permanent_rules(ready.tool.name, ready.judged, call_digest(ready.call))
            said = "; ".join(map(format_for_log, rules))
            return _ApprovalOutcome(
                PolicyDecision("allow", f"you said yes, and to remember: {said}", by), remembered=rules
            )
        if answered.answer == EDIT:
            return _ApprovalOutcome(
                PolicyDecision("allow", "you changed it and said yes", by), arguments=answered.arguments
            )
        if answered.answer == YES:
            return _ApprovalOutcome(PolicyDecision("allow", "you said yes", by))
        why = "nobody was there to say yes" if by == "nobody" else "the user said no"
        return _ApprovalOutcome(PolicyDecision("deny", f"{why}: {answered.reason}" if answered.reason else why, by))

    def _apply_edit(
        self, ready: JudgedCall, said: _ApprovalOutcome, desk: SessionPort
    ) -> tuple[JudgedCall, _ApprovalOutcome]:
        """The call as the person made it. It is judged anew, and what is denied stays denied."""
        changed = self._again(ToolCall(ready.call.id, ready.call.name, said.arguments), desk)
        ruling = self.decide_call(changed, desk)
        return changed, said._replace(ruling=ruling) if ruling.decision == "deny" else said


def _highest_risk(group: Sequence[_PreviewedCall]) -> Risk:
    return RISKS[max(RISKS.index(shown.ready.judged.risk) for shown in group)]


def _with_expiry(rule: PermissionRule, until: str) -> PermissionRule:
    return replace(rule, until=until)


def _suggest_next(ruling: PolicyDecision) -> list[str]:
    if ruling.by in ("mode", "rule", "project", "guard"):
        return ["Go on without it, or say what you would have done."]
    return ["Do not try the same again; ask or find another way."]
