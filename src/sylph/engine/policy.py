"""May this call run? A pure decision over mode, effect, risk and what was granted, with its reason."""

from typing import NamedTuple

from sylph.core.facts import Decision, Effect, Mode, Risk

MODES: dict[Mode, dict[Effect, Decision]] = {
    "trust": {"read": "allow", "write": "allow", "external": "allow", "self": "allow"},
    "auto_noselfmod": {"read": "allow", "write": "allow", "external": "allow", "self": "ask"},
    "ask": {"read": "allow", "write": "ask", "external": "ask", "self": "ask"},
    "sandbox": {"read": "allow", "write": "ask", "external": "ask", "self": "deny"},
    "plan": {"read": "allow", "write": "deny", "external": "deny", "self": "deny"},
}

MEANING: dict[Effect, str] = {
    "read": "only looks",
    "write": "changes files or runs a command",
    "external": "reaches outside of this machine",
    "self": "changes Sylph itself",
}


class Ruling(NamedTuple):
    decision: Decision
    reason: str
    by: str


def decide(mode: Mode, effect: Effect, risk: Risk, *, granted: bool = False) -> Ruling:
    """`allow`, `ask` or `deny`. A grant turns a question into a yes, never a no into anything."""
    decision = MODES[mode][effect]
    if decision == "ask" and granted:
        return Ruling("allow", "you allowed this for the session", "grant")
    warning = " and is dangerous" if risk == "dangerous" else ""
    return Ruling(decision, f"mode `{mode}`: what {MEANING[effect]}{warning} is {_SAID[decision]}", "mode")


_SAID: dict[Decision, str] = {"allow": "allowed", "ask": "asked about", "deny": "denied"}
