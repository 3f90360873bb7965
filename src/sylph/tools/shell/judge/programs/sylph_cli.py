"""Sylph's own command: what only looks, and everything else, which would change Sylph or start another one."""

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ProgramCall, ProgramHandler

_LOOK = name_set("cost diagnose doctor models replay roles status tools verify completion")
# Groups with commands that only look; alone they list or explain.
_GROUPS = {
    "session": name_set("list show search tree"),
    "task": name_set("list show"),
    "job": name_set("list show output"),
    "policy": name_set("explain list"),
    "config": name_set("show get schema path"),
    "connect": name_set("status"),
}


def judge_sylph(call: ProgramCall) -> None:
    words = [arg.exact_text or "" for arg in call.args]
    plain = [word for word in words if not word.startswith("-")]
    if not all(arg.known for arg in call.args) or not words:
        looks = False
    elif words[0] in ("--version", "--help", "-h"):
        looks = True
    else:
        first, rest = words[0], plain[1:2]
        looks = (first in _LOOK and not (first == "models" and rest)) or (
            first in _GROUPS and bool(rest) and rest[0] in _GROUPS[first]
        )
    if looks:
        call.note_read_only()
    else:
        call.note("self", "dangerous", "changes Sylph itself, or has another one work without you")


TABLE: dict[str, ProgramHandler] = {"sylph": judge_sylph}
