"""Protected places in a call's way: they make it worse than it was judged, or need a person whatever the mode."""

from msgspec.structs import replace

from sylph.core.permission.path_policy import PathPolicy
from sylph.core.permission.protected_path import ProtectionKind, find_protection
from sylph.core.permission.types import Decision, Risk
from sylph.core.tool import CallAssessment
from sylph.engine.calls.policy import PolicyGuard

RISKS: tuple[Risk, ...] = ("safe", "caution", "dangerous")
# Sylph's source is not in here: changing it has an effect of its own, which the mode decides about.
READ_DECISIONS: dict[ProtectionKind, Decision] = {"secret": "ask", "sylph": "ask"}
WRITE_DECISIONS: dict[ProtectionKind, Decision] = {"secret": "ask", "startup": "ask", "git": "deny", "sylph": "deny"}


def find_guards(judged: CallAssessment, places: PathPolicy, *, command: bool) -> tuple[PolicyGuard, ...]:
    """What the policy has to know. A command that touches git's own files may be git's: a person can tell."""
    found: list[PolicyGuard] = []
    for path, writing in _touched_paths(judged):
        guard = find_protection(path, writing=writing, places=places)
        decision = (WRITE_DECISIONS if writing else READ_DECISIONS).get(guard.kind) if guard else None
        if guard and decision:
            milder = command and guard.kind == "git"
            found.append(PolicyGuard(guard.kind, "ask" if milder else decision, path, f"it {guard.why}: {path}"))
    return tuple(found)


def raise_risk(judged: CallAssessment, places: PathPolicy) -> CallAssessment:
    """The judgement with what its paths make of it."""
    for path, writing in _touched_paths(judged):
        if guard := find_protection(path, writing=writing, places=places):
            risk = max(judged.risk, guard.risk, key=RISKS.index)
            worse = risk != judged.risk or guard.effect not in (None, judged.effect)
            why = f"{guard.why}: {path}" if worse else judged.why
            judged = replace(judged, effect=guard.effect or judged.effect, risk=risk, why=why)
    return judged


def _touched_paths(judged: CallAssessment) -> list[tuple[str, bool]]:
    return [*((path, False) for path in judged.reads), *((path, True) for path in judged.writes)]
