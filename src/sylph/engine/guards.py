"""Protected places in a call's way: they make it worse than it was judged, or need a person whatever the mode."""

from msgspec.structs import replace

from sylph.core.facts import Decision
from sylph.core.permission import Risk
from sylph.core.places import Places
from sylph.core.protected import Kind, guarded
from sylph.core.tool import Judged
from sylph.engine.policy import Guard

RISKS: tuple[Risk, ...] = ("safe", "caution", "dangerous")
# Sylph's source is not in here: changing it has an effect of its own, which the mode decides about.
READING: dict[Kind, Decision] = {"secret": "ask", "sylph": "ask"}
WRITING: dict[Kind, Decision] = {"secret": "ask", "startup": "ask", "git": "deny", "sylph": "deny"}


def guards(judged: Judged, places: Places, *, command: bool) -> tuple[Guard, ...]:
    """What the policy has to know. A command that touches git's own files may be git's: a person can tell."""
    found: list[Guard] = []
    for path, writing in _touched(judged):
        guard = guarded(path, writing=writing, places=places)
        decision = (WRITING if writing else READING).get(guard.kind) if guard else None
        if guard and decision:
            milder = command and guard.kind == "git"
            found.append(Guard(guard.kind, "ask" if milder else decision, path, f"it {guard.why}: {path}"))
    return tuple(found)


def raised(judged: Judged, places: Places) -> Judged:
    """The judgement with what its paths make of it."""
    for path, writing in _touched(judged):
        if guard := guarded(path, writing=writing, places=places):
            risk = max(judged.risk, guard.risk, key=RISKS.index)
            worse = risk != judged.risk or guard.effect not in (None, judged.effect)
            why = f"{guard.why}: {path}" if worse else judged.why
            judged = replace(judged, effect=guard.effect or judged.effect, risk=risk, why=why)
    return judged


def _touched(judged: Judged) -> list[tuple[str, bool]]:
    return [*((path, False) for path in judged.reads), *((path, True) for path in judged.writes)]
