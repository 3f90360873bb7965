"""Programs that run other programs, which are judged in their turn."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from sylph.core.permission.types import Effect, Risk
from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ProgramCall, ProgramHandler, parse_options
from sylph.tools.shell.judge.programs.file_changers import note_removal
from sylph.tools.shell.judge.risky_variables import judge_variable
from sylph.tools.shell.judge.word_expansion import ShellArg

SOMETHING = ShellArg("…", known=False, loose=True)
_ASSIGN = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def wrapper_handler(
    taking: str = "", *, skip: int = 0, effect: Effect = "read", risk: Risk = "safe", reason: str = ""
) -> ProgramHandler:
    """Options, then `skip` words of its own, then a command."""
    values = name_set(taking)

    def judge(call: ProgramCall) -> None:
        given = parse_options(call.args, values, leading=True)
        call.note(effect, risk, reason or "runs another command")
        for value in given.values("-o", "--output", "--output-file"):
            call.effects.note_write(value, "writes a file")
        rest = given.operands[skip:]
        if given.unsure:
            call.note("write", "dangerous", "runs a program that only the run can tell")
        elif rest:
            call.judge_nested(rest)

    return judge


def judge_env(call: ProgramCall) -> None:
    given = parse_options(call.args, name_set("-u -C -S --unset --chdir --split-string"), leading=True)
    call.note_read_only()
    rest = list(given.operands)
    cwds = call.effects.cwds
    for folder in given.values("-C", "--chdir"):
        paths = call.effects.resolve_paths(folder)
        call.effects.cwds = None if paths is None else tuple(paths)
    if given.has("-S", "--split-string"):
        for text in given.values("-S", "--split-string"):
            call.note("write", "caution", "splits a text into a command")
            call.judge_script(
                ShellArg(
                    " ".join(["env", text.text, *(each.text for each in rest)]),
                    text.known and all(each.known for each in rest),
                )
            )
        rest = []
    while rest and (found := _ASSIGN.fullmatch(rest[0].text)):
        judge_variable(found[1], frozenset({found[2]}) if rest[0].is_certain else None, call.effects)
        rest.pop(0)
    if rest:
        call.judge_nested(rest)
    call.effects.cwds = cwds


def judge_shell(call: ProgramCall) -> None:
    """bash and its kin: a text, a file, or what comes in."""
    args = list(call.args)
    text, rest = _inline_script(args)
    if text is not None:
        call.note("read", "safe", "runs commands")
        call.judge_script(text)
        return
    if len(args) == 1 and args[0].text == "--version":
        call.note_read_only()
    elif rest:
        call.effects.note_read(rest[0])
        call.note(
            "write",
            "dangerous" if not rest[0].is_certain or rest[0].text == "/dev/fd/63" else "caution",
            "runs a script",
        )
    elif call.stdin.kind == "text" and call.stdin.text is not None:
        call.note("read", "safe", "runs commands")
        call.judge_script(ShellArg(call.stdin.text))
    elif call.stdin.kind == "download":
        call.note("external", "dangerous", "runs what was downloaded")
    elif call.stdin.kind in ("nothing", "file"):
        call.note("write", "caution", "opens a shell" if call.stdin.kind == "nothing" else "runs a script")
    else:
        call.note("write", "dangerous", "runs what another command prints")


def _inline_script(args: Sequence[ShellArg]) -> tuple[ShellArg | None, list[ShellArg]]:
    """The text behind -c, and else the operands."""
    at = 0
    while at < len(args):
        arg = args[at]
        if not arg.is_certain or not re.match(r"[-+].", arg.text) or arg.text == "--":
            break
        if arg.text in ("--rcfile", "--init-file"):
            return ShellArg("", known=False), []
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", arg.text):
            rest = [each for each in args[at + 1 :] if not (each.is_certain and each.text.startswith(("-", "+")))]
            return (rest[0] if rest else SOMETHING), []
        at += 2 if re.fullmatch(r"[-+][A-Za-z]*[oO]", arg.text) else 1
    rest = [arg for arg in args[at:] if arg.text != "--"]
    return None, [] if any(arg.text == "-s" for arg in args[:at]) else rest


def judge_xargs(call: ProgramCall) -> None:
    taking = name_set(
        "-a -d -E -I -L -n -P -s -i -l --arg-file --delimiter --replace --max-lines --max-args --max-procs"
        " --max-chars --process-slot-var"
    )
    given = parse_options(call.args, taking - name_set("-i -l --replace"), leading=True)
    for value in given.values("-a", "--arg-file"):
        call.effects.note_read(value)
    call.note("read", "safe", "runs another command")
    rest = given.operands
    if given.unsure:
        call.note("write", "dangerous", "runs a program that only the run can tell")
    elif rest:
        marks = [value.text for value in given.values("-I", "--replace", "-i")] or (
            ["{}"] if given.has("-i", "--replace") else []
        )
        filled = [_fill_marks(arg, marks) for arg in rest]
        # Without a mark the words come last.
        fed = replace(call, stdin=replace(call.stdin, kind="nothing"))
        fed.judge_nested(filled if marks else [*filled, SOMETHING])


def _fill_marks(arg: ShellArg, marks: Sequence[str]) -> ShellArg:
    return replace(arg, known=False) if any(mark in arg.text for mark in marks) else arg


_FIND_VALUES = name_set(
    "-name -iname -path -ipath -wholename -regex -iregex -type -xtype -size -mtime -mmin -ctime -cmin -atime"
    " -amin -maxdepth -mindepth -perm -user -group"
    " -uid -gid -links -inum -fstype -lname -ilname -printf -regextype -used -context -newermt"
)
_FIND_PLAIN = name_set(
    "-print -print0 -prune -quit -ls -not -and -or -a -o ! ( ) , -true -false -empty -depth -d -xdev -mount"
    " -follow -daystart -noleaf -readable -writable"
    " -executable -nouser -nogroup -ignore_readdir_race -L -H -P -nowarn -warn -E -X -s -x -O1 -O2 -O3"
)


_FIND_RUNS = name_set("-exec -execdir -ok -okdir")


def judge_find(call: ProgramCall) -> None:
    args = list(call.args)
    while args and args[0].exact_text in ("-L", "-H", "-P"):
        args.pop(0)
    roots: list[ShellArg] = []
    while args and not (args[0].is_certain and args[0].text[:1] in ("-", "(", "!")):
        roots.append(args.pop(0))
    roots = roots or [ShellArg(".")]
    call.note_read_only()
    for root in roots:
        if root.may_be_option:
            call.note("write", "caution", "may be given an option that writes: only the run can tell")
        call.effects.note_read(root)
    narrowed = any(arg.text in _FIND_VALUES and arg.text not in ("-maxdepth", "-mindepth", "-printf") for arg in args)
    while args:
        _judge_find_test(call, args.pop(0), args, roots, narrowed=narrowed)


def _judge_find_test(
    call: ProgramCall, arg: ShellArg, rest: list[ShellArg], roots: Sequence[ShellArg], *, narrowed: bool
) -> None:
    """One test or action of find; what belongs to it is taken from the `rest`."""
    if arg.text in _FIND_RUNS:
        _judge_find_exec(call, rest, roots)
    elif arg.text == "-delete":
        for root in roots:
            note_removal(call, root, deep=not narrowed)
    elif arg.text in ("-fprint", "-fprint0", "-fls", "-fprintf"):
        call.effects.note_write(rest.pop(0) if rest else SOMETHING, "writes a file")
    elif arg.text in ("-anewer", "-cnewer", "-samefile", "-files0-from") or arg.text.startswith("-newer"):
        call.effects.note_read(rest.pop(0) if rest else SOMETHING)
    elif arg.text in _FIND_VALUES:
        named = rest.pop(0) if rest else SOMETHING
        if arg.text in ("-name", "-iname") and named.known and any(each.text in _FIND_RUNS for each in rest):
            call.effects.note_suspects(
                path for root in roots for path in call.effects.likely_secrets(root.text, named.text)
            )
    elif arg.exact_text not in _FIND_PLAIN:
        call.note("write", "caution", "is given something that cannot be read here")


def _judge_find_exec(call: ProgramCall, args: list[ShellArg], roots: Sequence[ShellArg]) -> None:
    """The command that find runs for what it finds, up to `;` or `+`."""
    command: list[ShellArg] = []
    while args and args[0].text not in (";", "+"):
        command.append(args.pop(0))
    if args:
        args.pop(0)
    if not command:
        call.note("write", "dangerous", "runs a program that only the run can tell")
        return
    single = len(roots) == 1 and roots[0].is_certain
    # What it finds lies below where it looks; as a part of a text it can be anything.
    found = [
        ShellArg(f"{roots[0].text}/…", pattern=f"{roots[0].text}/…*")
        if arg.text == "{}" and single
        else _fill_marks(arg, ["{}"])
        for arg in command
    ]
    call.judge_nested(found)


def judge_eval(call: ProgramCall) -> None:
    """eval: its words are put together and run."""
    if all(arg.exact_text is not None for arg in call.args):
        call.note("read", "safe", "runs commands")
        call.judge_script(ShellArg(" ".join(arg.text for arg in call.args)))
    else:
        call.note("write", "dangerous", "runs a text that only the run can tell")


def judge_trap(call: ProgramCall) -> None:
    call.note_read_only()
    given = parse_options(call.args, leading=True)
    if given.operands and given.operands[0].text not in ("-", "") and len(given.operands) > 1:
        call.judge_script(given.operands[0])


def judge_command(call: ProgramCall) -> None:
    """command, builtin, exec: what follows is run; or, with -v, only looked up."""
    given = parse_options(call.args, name_set("-a"), leading=True)
    call.note_read_only()
    if given.has("-v", "-V") or not given.operands:
        return
    if given.unsure:
        call.note("write", "dangerous", "runs a program that only the run can tell")
    call.judge_nested(given.operands)


def judge_source(call: ProgramCall) -> None:
    call.note("write", "caution", "runs a script in this shell")
    for arg in call.args[:1]:
        call.effects.note_read(arg)
        if not arg.is_certain or arg.text == "/dev/fd/63":
            call.note("write", "dangerous", "runs a script that only the run can tell")


def judge_jobs(call: ProgramCall) -> None:
    call.note_read_only()
    if "-x" in call.arg_texts():
        call.judge_nested(call.args[call.arg_texts().index("-x") + 1 :] or (SOMETHING,))


def judge_flock(call: ProgramCall) -> None:
    given = parse_options(call.args, name_set("-w -E --timeout --conflict-exit-code"), leading=True)
    for lock in given.operands[:1]:
        call.effects.note_write(lock, "locks a file")
    rest = given.operands[1:]
    if rest and rest[0].text in ("-c", "--command"):
        call.judge_script(rest[1] if len(rest) > 1 else ShellArg(""))
    elif rest:
        call.judge_nested(rest)


def judge_parallel(call: ProgramCall) -> None:
    given = parse_options(
        call.args,
        name_set("-j -I -a -S -N -n --jobs --arg-file --sshlogin --results --joblog --delay --timeout"),
        leading=True,
    )
    call.note("write", "caution", "runs commands that are put together when it runs")
    words = [arg for arg in given.operands if arg.text not in (":::", "::::", ":::+")]
    if given.has("-S", "--sshlogin", "--sshloginfile"):
        call.note("external", "dangerous", "runs commands on another machine")
    if words and len(words[0].text.split()) == 1:
        call.judge_nested([*words, SOMETHING])
    else:
        call.note("write", "dangerous", "runs a text that only the run can tell")


def judge_busybox(call: ProgramCall) -> None:
    call.note_read_only()
    if call.args:
        call.judge_nested(call.args)


def judge_text_command(call: ProgramCall) -> None:
    """watch, script -c, su -c: the words are one command line."""
    given = parse_options(call.args, name_set("-n -d -c -q -t --interval --command"), leading=True)
    call.note("write", "caution", "runs a command again and again" if call.name == "watch" else "runs a command")
    texts = given.values("-c", "--command") or (
        [
            ShellArg(
                " ".join(arg.text for arg in given.operands), all(arg.exact_text is not None for arg in given.operands)
            )
        ]
        if given.operands
        else []
    )
    for text in texts:
        call.judge_script(text)


_PROJECT = "runs a command of the project"
TABLE: dict[str, ProgramHandler] = {
    "env": judge_env,
    **dict.fromkeys(name_set("bash sh zsh dash ksh ash mksh rbash fish"), judge_shell),
    "xargs": judge_xargs,
    "gxargs": judge_xargs,
    "find": judge_find,
    "gfind": judge_find,
    "eval": judge_eval,
    "trap": judge_trap,
    "jobs": judge_jobs,
    **dict.fromkeys(name_set("command builtin exec"), judge_command),
    **dict.fromkeys(name_set("source ."), judge_source),
    "flock": judge_flock,
    "parallel": judge_parallel,
    **dict.fromkeys(name_set("busybox toybox"), judge_busybox),
    **dict.fromkeys(name_set("watch script"), judge_text_command),
    **dict.fromkeys(name_set("nohup setsid unbuffer chronic catchsegv"), wrapper_handler()),
    "time": wrapper_handler("-o -f --output --format"),
    "nice": wrapper_handler("-n --adjustment"),
    "ionice": wrapper_handler("-c -n -p"),
    "stdbuf": wrapper_handler("-i -o -e --input --output --error"),
    "timeout": wrapper_handler("-k -s --kill-after --signal", skip=1),
    "taskset": wrapper_handler("", skip=1),
    "chrt": wrapper_handler("", skip=1),
    "caffeinate": wrapper_handler("-t -w"),
    "xvfb-run": wrapper_handler("-s -n -e", effect="write", risk="caution", reason="runs another command"),
    **dict.fromkeys(
        name_set("strace ltrace"),
        wrapper_handler("-e -o -p -s -E", effect="write", risk="caution", reason="watches a program"),
    ),
    **dict.fromkeys(
        name_set("gdb lldb valgrind perf rr"),
        wrapper_handler("-ex -x -p", effect="write", risk="caution", reason="runs a program under watch"),
    ),
    **dict.fromkeys(
        name_set("sudo doas pkexec su runuser"),
        wrapper_handler(
            "-u -g -h -p -C -r -t -U --user --group",
            effect="write",
            risk="dangerous",
            reason="runs a command with the rights of another user",
        ),
    ),
    **dict.fromkeys(
        name_set("chroot unshare nsenter bwrap firejail systemd-run capsh setpriv proot fakeroot"),
        wrapper_handler(effect="write", risk="dangerous", reason="runs a command in surroundings of its own"),
    ),
}
