"""Whether calls may run: decided by the policy, and asked where a person has to say so."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from sylph.core import facts
from sylph.core.errors import Refused, ToolError
from sylph.core.facts import Answered, Asked
from sylph.core.messages import ToolCall
from sylph.core.permission import Rule
from sylph.core.places import Places
from sylph.core.rules import NoRules, Rulebook, Rules, live, noted, stamp
from sylph.core.text import count
from sylph.core.tool import Judged
from sylph.engine import narrow
from sylph.engine.desk import Desk
from sylph.engine.guards import guards, raised
from sylph.engine.policy import Case, Guard, Ruling, decide
from sylph.engine.ready import Ready, digest

YES, SESSION, ALWAYS, EDIT, NO = "yes", "session", "always", "edit", "no"
HOUR = 3_600_000
RISKS: tuple[facts.Risk, ...] = ("safe", "caution", "dangerous")

Arbiter = Callable[[str, Case], Ruling]
"""Decides about a call, given its id."""


class Consent(Struct, frozen=True, kw_only=True):
    """How a person is asked, and how long their word counts."""

    rulebook: Rulebook = field(default_factory=NoRules)
    places: Places | None = None
    """Where files are that are protected whatever the tool."""
    arbiter: Arbiter = lambda _, case: decide(case)
    confined: Callable[[], bool] = lambda: True
    wait_seconds: float | None = 24 * 3600.0
    """How long a question stands before nobody's silence counts as no."""
    session_hours: float = 24.0
    """How long a yes for the session counts."""


class Permitted(NamedTuple):
    """A call that may run, as it may, and the fact that says so."""

    ready: Ready
    decided: facts.ToolDecided


class _Shown(NamedTuple):
    ready: Ready
    detail: str


class _Yes(NamedTuple):
    ruling: Ruling
    grants: tuple[Rule, ...] = ()
    remembered: tuple[Rule, ...] = ()
    arguments: str = ""


class Permits:
    def __init__(self, consent: Consent, again: Callable[[ToolCall, Desk], Ready]) -> None:
        self.consent, self._again = consent, again

    def ruling(self, ready: Ready, desk: Desk) -> Ruling:
        """What would be decided about this call now."""
        return self.consent.arbiter(ready.call.id, self.case(ready, desk))

    def case(self, ready: Ready, desk: Desk) -> Case:
        rules = self.consent.rulebook.read(ready.context.workspace)
        # The time of the newest fact, so that a replay decides as it was decided then.
        now = desk.summary.updated
        return Case(
            tool=ready.tool.name,
            mode=desk.summary.mode,
            judged=ready.judged,
            workspace=str(ready.context.workspace),
            digest=digest(ready.call),
            rules=Rules(live(rules.user, now), live(rules.project, now), rules.trouble),
            grants=live(desk.summary.grants, now),
            guards=self._guards(ready),
            # Found out only for what runs a command: it takes a moment. Who has switched it off wants no questions.
            confined=not ready.runs_commands or not desk.summary.sandbox or self.consent.confined(),
            command=ready.runs_commands,
        )

    def _guards(self, ready: Ready) -> tuple[Guard, ...]:
        places = self.consent.places
        return guards(ready.judged, places, command=ready.runs_commands) if places else ()

    def judged(self, judged: Judged) -> Judged:
        """The judgement of a tool, with what the places it touches make of it."""
        return raised(judged, self.consent.places) if self.consent.places else judged

    async def permit(self, ready: Ready, desk: Desk) -> Permitted:
        """Returns for a call that may run; for one that may not, the reason is written down and raised."""
        known = desk.summary.open_calls.get(ready.call.id)
        ruling = self.ruling(ready, desk)
        said = _Yes(ruling)
        if known and known.decided and known.digest == digest(ready.call):
            # Decided before the process died: the same call with the same arguments is not asked about twice.
            said = _Yes(Ruling("allow", "allowed before the interruption", "log"))
        elif ruling.decision == "ask" and desk.summary.dry_run:
            said = _Yes(Ruling("allow", "a dry run changes nothing", "dry_run"))
        elif ruling.decision == "ask":
            said = self._heard(ready, await self._answer(ready, desk), desk)
        if said.arguments:
            ready, said = self._edited(ready, said, desk)
        decided = facts.ToolDecided(
            call=ready.call.id,
            decision=said.ruling.decision,
            reason=said.ruling.reason,
            by=said.ruling.by,
            effect=ready.judged.effect,
            risk=ready.judged.risk,
            digest=digest(ready.call),
            reach=ready.judged.reach,
            arguments=said.arguments,
            grants=said.grants,
            remembered=said.remembered,
        )
        if said.ruling.decision != "allow":
            await desk.emit(decided)
            raise Refused(f"{ready.tool.name} was not permitted: {said.ruling.reason}.", next=_otherwise(said.ruling))
        if said.remembered:
            self.consent.rulebook.remember(said.remembered)
        return Permitted(ready, decided)

    async def _answer(self, ready: Ready, desk: Desk) -> Answered:
        return desk.heard(ready.call.id) or await self._ask([_Shown(ready, await ready.preview())], desk)

    async def ahead(self, calls: Iterable[Ready], desk: Desk) -> None:
        """Asks about all calls of a round at once, those of one kind together; the answers wait in the log."""
        groups: dict[tuple[str, tuple[Rule, ...]], list[_Shown]] = {}
        for ready in calls:
            if desk.heard(ready.call.id) or self.ruling(ready, desk).decision != "ask":
                continue
            # What cannot be shown yet, or is sure to fail, is seen to when it comes to it.
            with suppress(ToolError):
                shown = _Shown(ready, await ready.preview())
                groups.setdefault((ready.tool.name, self._session(ready)), []).append(shown)
        if sum(map(len, groups.values())) > 1:
            await asyncio.gather(*(self._ask(group, desk) for group in groups.values()))

    async def _ask(self, group: Sequence[_Shown], desk: Desk) -> Answered:
        first, alone = group[0].ready, len(group) == 1
        grants = self._session(first)
        always = narrow.always(first.tool.name, first.judged, digest(first.call)) if alone else ()
        offered = {YES: True, SESSION: bool(grants), ALWAYS: bool(always), EDIT: alone, NO: True}
        times = "" if alone else f" {count(len(group), 'time')}"
        return await desk.ask(
            lambda id: Asked(
                id=id,
                kind="approval",
                question=f"May {first.tool.name} run{times}?",
                choices=tuple(choice for choice, possible in offered.items() if possible),
                call=first.call.id,
                calls=() if alone else tuple(shown.ready.call.id for shown in group),
                detail="\n".join(filter(None, (shown.detail for shown in group))),
                effect=first.judged.effect,
                risk=_riskiest(group),
                reach=first.judged.reach,
                grants=grants,
                rules=always,
            ),
            self.consent.wait_seconds,
        )

    def _session(self, ready: Ready) -> tuple[Rule, ...]:
        by_content = ready.tool.recourse == "by_content"
        place = str(ready.context.workspace)
        return narrow.session(ready.tool.name, ready.judged, place, digest(ready.call), by_content=by_content)

    def _heard(self, ready: Ready, answered: Answered, desk: Desk) -> _Yes:
        by = answered.by
        if answered.answer == SESSION:
            until = stamp(desk.summary.updated + round(self.consent.session_hours * HOUR))
            grants = tuple(_until(rule, until) for rule in self._session(ready))
            return _Yes(Ruling("allow", "you said yes for the session", by), grants=grants)
        if answered.answer == ALWAYS:
            rules = narrow.always(ready.tool.name, ready.judged, digest(ready.call))
            said = "; ".join(map(noted, rules))
            return _Yes(Ruling("allow", f"you said yes, and to remember: {said}", by), remembered=rules)
        if answered.answer == EDIT:
            return _Yes(Ruling("allow", "you changed it and said yes", by), arguments=answered.arguments)
        if answered.answer == YES:
            return _Yes(Ruling("allow", "you said yes", by))
        why = "nobody was there to say yes" if by == "nobody" else "the user said no"
        return _Yes(Ruling("deny", f"{why}: {answered.reason}" if answered.reason else why, by))

    def _edited(self, ready: Ready, said: _Yes, desk: Desk) -> tuple[Ready, _Yes]:
        """The call as the person made it. It is judged anew, and what is denied stays denied."""
        changed = self._again(ToolCall(ready.call.id, ready.call.name, said.arguments), desk)
        ruling = self.ruling(changed, desk)
        return changed, said._replace(ruling=ruling) if ruling.decision == "deny" else said


def _riskiest(group: Sequence[_Shown]) -> facts.Risk:
    return RISKS[max(RISKS.index(shown.ready.judged.risk) for shown in group)]


def _until(rule: Rule, until: str) -> Rule:
    return replace(rule, until=until)


def _otherwise(ruling: Ruling) -> list[str]:
    if ruling.by in ("mode", "rule", "project", "guard"):
        return ["Go on without it, or say what you would have done."]
    return ["Do not try the same again; ask or find another way."]
