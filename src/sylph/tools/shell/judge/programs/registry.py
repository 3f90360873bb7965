"""All the programs that are known, by their name."""

import re

from sylph.tools.shell.judge.program_call import ProgramCall, ProgramHandler
from sylph.tools.shell.judge.programs import (
    code_runners,
    file_changers,
    git,
    network_clients,
    read_only,
    sed_awk,
    sylph_cli,
    system,
    wrappers,
)

PROGRAMS: dict[str, ProgramHandler] = {
    **read_only.TABLE,
    **file_changers.TABLE,
    **sed_awk.TABLE,
    **git.TABLE,
    **code_runners.TABLE,
    **network_clients.TABLE,
    **system.TABLE,
    **sylph_cli.TABLE,
    **wrappers.TABLE,
}
_VERSIONED = re.compile(
    r"(python|pypy|perl|ruby|node|php|lua|pip|gcc|g\+\+|clang|clang\+\+|awk|git|bash|vim)[-.\d]+[a-z]?"
)
_MAKES = re.compile(r"mkfs(\..*)?|mke2fs|newfs.*|mkswap")


def _find_handler(name: str) -> ProgramHandler | None:
    if name in PROGRAMS:
        return PROGRAMS[name]
    if found := _VERSIONED.fullmatch(name):
        return PROGRAMS.get(found[1])
    return system.dangerous_handler("makes a file system") if _MAKES.fullmatch(name) else None


def is_known_program(name: str) -> bool:
    return _find_handler(name) is not None


def handler_for(name: str) -> ProgramHandler:
    return _find_handler(name) or judge_unknown


def judge_unknown(call: ProgramCall) -> None:
    if not call.name.isascii() or not call.name.isprintable():
        call.note("write", "dangerous", "has a name with characters that look like others")
    elif any(arg.text == "--privileged" for arg in call.args):
        call.note("write", "dangerous", "is a program that is not known here")
    else:
        call.note("write", "caution", "is a program that is not known here")
