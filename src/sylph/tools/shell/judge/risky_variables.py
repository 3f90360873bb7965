"""Variables that make programs run something else than they are called by."""

import re

from sylph.tools.shell.judge.effects import CommandEffects
from sylph.tools.shell.judge.name_set import name_set

# Whatever they hold is run, or loaded into every program.
_RUN = re.compile(
    r"LD_(PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_.*|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|BASH_(ALIASES|CMDS|LOADABLES_PATH)|BASH_FUNC_.*"
    r"|GIT_(SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND|EXEC_PATH|TEMPLATE_DIR|CONFIG.*)"
    r"|(MAN|SYSTEMD_|AWS_|DELTA_|BAT_)?PAGER|EDITOR|VISUAL|FCEDIT|BROWSER|SSH_ASKPASS|SUDO_ASKPASS|LESS(OPEN|CLOSE|EDIT)?|RSYNC_RSH|CVS_RSH"
    r"|TAR_OPTIONS|PERL5(OPT|DB|LIB)|PERLLIB|RUBY(OPT|LIB)|PYTHON(STARTUP|HOME|INSPECT|BREAKPOINT|WARNINGS)|NODE_(OPTIONS|PATH)"
    r"|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|MAKEFLAGS|MAKEFILES|GCONV_PATH|RIPGREP_CONFIG_PATH|AWK(PATH|LIBPATH)|SHELL|RUSTC(_WRAPPER)?|CC|CXX|GREP_OPTIONS"
)
# They change what is found, not what is run for sure.
_TURN = name_set(
    "PATH HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS IFS CDPATH PYTHONPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE TMPDIR"
    " GLOBIGNORE"
)
_TOOL = re.compile(r".*(PAGER|EDITOR)|VISUAL|LESS")
_HARMLESS = name_set("cat true : less more -R -FRX") | {""}


def judge_variable(name: str, held: frozenset[str] | None, scene: CommandEffects) -> None:
    """An assignment of a variable, by what it can make other programs do."""
    if _RUN.fullmatch(name):
        mild = _HARMLESS if _TOOL.fullmatch(name) else frozenset({""})
        if held is not None and held <= mild:
            return
        scene.commands[scene.current_command] = None
        scene.note("write", "dangerous", f"sets {name}, which makes programs run something else")
    elif name in _TURN:
        # A rule about the commands themselves does not cover this.
        scene.commands[scene.current_command] = None
        scene.note("write", "caution", f"sets {name}, which changes what programs do")
