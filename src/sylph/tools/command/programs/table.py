"""All the programs that are known, by their name."""

import re

from sylph.tools.command.call import Call, Handler
from sylph.tools.command.programs import build, change, git, look, own, reach, system, text, wrap

PROGRAMS: dict[str, Handler] = {
    **look.TABLE,
    **change.TABLE,
    **text.TABLE,
    **git.TABLE,
    **build.TABLE,
    **reach.TABLE,
    **system.TABLE,
    **own.TABLE,
    **wrap.TABLE,
}
_VERSIONED = re.compile(
    r"(python|pypy|perl|ruby|node|php|lua|pip|gcc|g\+\+|clang|clang\+\+|awk|git|bash|vim)[-.\d]+[a-z]?"
)
_MAKES = re.compile(r"mkfs(\..*)?|mke2fs|newfs.*|mkswap")


def _found(name: str) -> Handler | None:
    if name in PROGRAMS:
        return PROGRAMS[name]
    if found := _VERSIONED.fullmatch(name):
        return PROGRAMS.get(found[1])
    return system.grave("makes a file system") if _MAKES.fullmatch(name) else None


def known(name: str) -> bool:
    return _found(name) is not None


def handler(name: str) -> Handler:
    return _found(name) or unknown


def unknown(call: Call) -> None:
    if not call.name.isascii() or not call.name.isprintable():
        call.note("write", "dangerous", "has a name with characters that look like others")
    elif any(arg.text == "--privileged" for arg in call.args):
        call.note("write", "dangerous", "is a program that is not known here")
    else:
        call.note("write", "caution", "is a program that is not known here")
