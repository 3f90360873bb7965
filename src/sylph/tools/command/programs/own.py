"""Sylph's own command: what only looks, and everything else, which would change Sylph or start another one."""

from sylph.tools.command.call import Call, Handler
from sylph.tools.command.names import names

_LOOK = names("cost diagnose doctor models replay roles status tools verify completion")
# Groups with commands that only look; alone they list or explain.
_GROUPS = {
    "session": names("list show search tree"),
    "task": names("list show"),
    "job": names("list show output"),
    "policy": names("explain list"),
    "config": names("show get schema path"),
    "connect": names("status"),
}


def sylph(call: Call) -> None:
    words = [arg.sure or "" for arg in call.args]
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
        call.looks()
    else:
        call.note("self", "dangerous", "changes Sylph itself, or has another one work without you")


TABLE: dict[str, Handler] = {"sylph": sylph}
