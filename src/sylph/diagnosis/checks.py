"""What is wrong with a session, what shows it, and what to do: a pure function over its events and a few live facts."""

from collections.abc import Sequence
from typing import NamedTuple

from sylph.core.events import Event
from sylph.core.text.formatting import count_noun
from sylph.diagnosis import deliveries, log_store, model_requests, tool_calls, turns
from sylph.diagnosis.finding import CheckFunction, DiagnosisCase, DiagnosisFinding, LiveSessionInfo


class SessionCheck(NamedTuple):
    """A question to a session, and what is said where there is nothing to say."""

    name: str
    run: CheckFunction
    ok_message: str = ""


CHECKS = (
    SessionCheck("log", log_store.check_log, "{events}, all readable, the chain holds"),
    SessionCheck("turns", turns.check_turns, "every turn ended once"),
    SessionCheck("states", turns.check_states, "every change of state is an edge of the table"),
    SessionCheck("calls", tool_calls.check_pairing, "every call has its one result"),
    SessionCheck("effects", tool_calls.check_effects, "nothing was left half done"),
    SessionCheck("unknown", tool_calls.check_unknown_outcomes, "every outcome is known"),
    SessionCheck("questions", turns.check_questions, "every question has its answer"),
    SessionCheck("inputs", turns.check_inputs, "every message was heard"),
    SessionCheck("deliveries", deliveries.check_deliveries, "nothing waits to be delivered"),
    SessionCheck("model", model_requests.check_requests, "every request has its answer"),
    SessionCheck("prompt", model_requests.check_prompt, "it only grew"),
    SessionCheck("compaction", model_requests.check_compaction, "none failed"),
    SessionCheck("snapshots", log_store.check_snapshots, "they say what the log says"),
    SessionCheck("replay", log_store.check_replay),
    SessionCheck("jobs", log_store.check_jobs, "none runs"),
    SessionCheck("lease", log_store.check_lease, "nobody holds the session"),
)


def diagnose_session(session: str, events: Sequence[Event], live: LiveSessionInfo) -> list[DiagnosisFinding]:
    """At least one finding for everything that was looked at."""
    case = DiagnosisCase(session, events, live)
    findings: list[DiagnosisFinding] = []
    for check in CHECKS:
        found = list(check.run(case))
        if not found and check.ok_message:
            found = [
                DiagnosisFinding(check.name, "ok", check.ok_message.format(events=count_noun(len(events), "fact")))
            ]
        findings += found
    return findings
