"""What a command line would do, told before it runs."""

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from sylph.core.permission.path_policy import PathPolicy
from sylph.core.tool import CallAssessment
from sylph.tools.shell.judge.effects import CommandEffects
from sylph.tools.shell.judge.risky_variables import judge_variable
from sylph.tools.shell.judge.syntax_tree import Unparsable
from sylph.tools.shell.judge.tree_walker import TreeWalker

# Characters that are not shown, or that turn the direction of writing: what a person reads is not what is run.
_UNSEEN = ("Cf", "Co", "Cs", "Zl", "Zp")
_STEERS = frozenset(chr(code) for code in range(32)) - frozenset("\t\n") | {"\x7f"}


def judge_line(
    text: str, *, cwd: Path, workspace: Path, places: PathPolicy, env: Mapping[str, str] | None = None
) -> CallAssessment:
    """What a command line does when bash runs it in `cwd`, as far as it can be told from its text and the files there.

    It never raises. What cannot be read is dangerous; what cannot be told is no less than a write to be careful with.
    """
    scene = CommandEffects(os.path.realpath(workspace), places, (os.path.realpath(cwd),))
    variables: dict[str, frozenset[str] | None] = {"HOME": frozenset({str(places.home)})}
    for name, value in (env or {}).items():
        scene.current_command = f"{name}={value}"
        variables[name] = frozenset({value})
        judge_variable(name, variables[name], scene)
    scene.current_command = ""
    if any(char in _STEERS or (not char.isascii() and unicodedata.category(char) in _UNSEEN) for char in text):
        scene.note("write", "dangerous", "holds characters that cannot be seen")
    try:
        TreeWalker(scene, variables).judge_script(text)
    except (Unparsable, RecursionError) as error:
        scene.current_command = ""
        scene.note("write", "dangerous", f"cannot be read as a command line: {error}")
    return scene.assessment
