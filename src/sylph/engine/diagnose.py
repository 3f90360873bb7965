"""What is wrong with a session, what shows it, and what to do: a pure function over its events and a few live facts."""

from collections.abc import Sequence
from typing import NamedTuple

from sylph.core.events import Event
from sylph.core.text import count
from sylph.engine.diagnosis import calls, deliveries, model, store, turns
from sylph.engine.diagnosis.finding import Case, Finding, Live, Look


class Check(NamedTuple):
    """A question to a session, and what is said where there is nothing to say."""

    name: str
    look: Look
    fine: str = ""


CHECKS = (
    Check("log", store.log, "{events}, all readable, the chain holds"),
    Check("turns", turns.turns, "every turn ended once"),
    Check("states", turns.states, "every change of state is an edge of the table"),
    Check("calls", calls.pairing, "every call has its one result"),
    Check("effects", calls.effects, "nothing was left half done"),
    Check("unknown", calls.unknown, "every outcome is known"),
    Check("questions", turns.questions, "every question has its answer"),
    Check("inputs", turns.inputs, "every message was heard"),
    Check("deliveries", deliveries.deliveries, "nothing waits to be delivered"),
    Check("model", model.requests, "every request has its answer"),
    Check("prompt", model.prompt, "it only grew"),
    Check("compaction", model.compaction, "none failed"),
    Check("snapshots", store.snapshots, "they say what the log says"),
    Check("replay", store.replay),
    Check("jobs", store.jobs, "none runs"),
    Check("lease", store.lease, "nobody holds the session"),
)


def diagnose(session: str, events: Sequence[Event], live: Live) -> list[Finding]:
    """At least one finding for everything that was looked at."""
    case = Case(session, events, live)
    findings: list[Finding] = []
    for check in CHECKS:
        found = list(check.look(case))
        if not found and check.fine:
            found = [Finding(check.name, "ok", check.fine.format(events=count(len(events), "fact")))]
        findings += found
    return findings
