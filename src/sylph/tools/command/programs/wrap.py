"""Programs that run other programs, which are judged in their turn."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from sylph.core.facts import Effect, Risk
from sylph.tools.command.call import Call, Handler, options
from sylph.tools.command.environment import judge_variable
from sylph.tools.command.expand import Arg
from sylph.tools.command.names import names
from sylph.tools.command.programs.change import remove

SOMETHING = Arg("…", known=False, loose=True)
_ASSIGN = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def wrapper(
    taking: str = "", *, skip: int = 0, effect: Effect = "read", risk: Risk = "safe", reason: str = ""
) -> Handler:
    """Options, then `skip` words of its own, then a command."""
    values = names(taking)

    def judge(call: Call) -> None:
        given = options(call.args, values, leading=True)
        call.note(effect, risk, reason or "runs another command")
        for value in given.values("-o", "--output", "--output-file"):
            call.scene.write(value, "writes a file")
        rest = given.operands[skip:]
        if given.unsure:
            call.note("write", "dangerous", "runs a program that only the run can tell")
        elif rest:
            call.run(rest)

    return judge


def env(call: Call) -> None:
    given = options(call.args, names("-u -C -S --unset --chdir --split-string"), leading=True)
    call.looks()
    rest = list(given.operands)
    cwds = call.scene.cwds
    for folder in given.values("-C", "--chdir"):
        paths = call.scene.paths(folder)
        call.scene.cwds = None if paths is None else tuple(paths)
    if given.has("-S", "--split-string"):
        for text in given.values("-S", "--split-string"):
            call.note("write", "caution", "splits a text into a command")
            call.script(
                Arg(
                    " ".join(["env", text.text, *(each.text for each in rest)]),
                    text.known and all(each.known for each in rest),
                )
            )
        rest = []
    while rest and (found := _ASSIGN.fullmatch(rest[0].text)):
        judge_variable(found[1], frozenset({found[2]}) if rest[0].certain else None, call.scene)
        rest.pop(0)
    if rest:
        call.run(rest)
    call.scene.cwds = cwds


def shell(call: Call) -> None:
    """bash and its kin: a text, a file, or what comes in."""
    args = list(call.args)
    text, rest = _inline(args)
    if text is not None:
        call.note("read", "safe", "runs commands")
        call.script(text)
        return
    if len(args) == 1 and args[0].text == "--version":
        call.looks()
    elif rest:
        call.scene.read(rest[0])
        call.note(
            "write", "dangerous" if not rest[0].certain or rest[0].text == "/dev/fd/63" else "caution", "runs a script"
        )
    elif call.fed.kind == "text" and call.fed.text is not None:
        call.note("read", "safe", "runs commands")
        call.script(Arg(call.fed.text))
    elif call.fed.kind == "download":
        call.note("external", "dangerous", "runs what was downloaded")
    elif call.fed.kind in ("nothing", "file"):
        call.note("write", "caution", "opens a shell" if call.fed.kind == "nothing" else "runs a script")
    else:
        call.note("write", "dangerous", "runs what another command prints")


def _inline(args: Sequence[Arg]) -> tuple[Arg | None, list[Arg]]:
    """The text behind -c, and else the operands."""
    at = 0
    while at < len(args):
        arg = args[at]
        if not arg.certain or not re.match(r"[-+].", arg.text) or arg.text == "--":
            break
        if arg.text in ("--rcfile", "--init-file"):
            return Arg("", known=False), []
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", arg.text):
            rest = [each for each in args[at + 1 :] if not (each.certain and each.text.startswith(("-", "+")))]
            return (rest[0] if rest else SOMETHING), []
        at += 2 if re.fullmatch(r"[-+][A-Za-z]*[oO]", arg.text) else 1
    rest = [arg for arg in args[at:] if arg.text != "--"]
    return None, [] if any(arg.text == "-s" for arg in args[:at]) else rest


def xargs(call: Call) -> None:
    taking = names(
        "-a -d -E -I -L -n -P -s -i -l --arg-file --delimiter --replace --max-lines --max-args --max-procs"
        " --max-chars --process-slot-var"
    )
    given = options(call.args, taking - names("-i -l --replace"), leading=True)
    for value in given.values("-a", "--arg-file"):
        call.scene.read(value)
    call.note("read", "safe", "runs another command")
    rest = given.operands
    if given.unsure:
        call.note("write", "dangerous", "runs a program that only the run can tell")
    elif rest:
        marks = [value.text for value in given.values("-I", "--replace", "-i")] or (
            ["{}"] if given.has("-i", "--replace") else []
        )
        filled = [_filled(arg, marks) for arg in rest]
        # Without a mark the words come last.
        fed = replace(call, fed=replace(call.fed, kind="nothing"))
        fed.run(filled if marks else [*filled, SOMETHING])


def _filled(arg: Arg, marks: Sequence[str]) -> Arg:
    return replace(arg, known=False) if any(mark in arg.text for mark in marks) else arg


_FIND_VALUES = names(
    "-name -iname -path -ipath -wholename -regex -iregex -type -xtype -size -mtime -mmin -ctime -cmin -atime"
    " -amin -maxdepth -mindepth -perm -user -group"
    " -uid -gid -links -inum -fstype -lname -ilname -printf -regextype -used -context -newermt"
)
_FIND_PLAIN = names(
    "-print -print0 -prune -quit -ls -not -and -or -a -o ! ( ) , -true -false -empty -depth -d -xdev -mount"
    " -follow -daystart -noleaf -readable -writable"
    " -executable -nouser -nogroup -ignore_readdir_race -L -H -P -nowarn -warn -E -X -s -x -O1 -O2 -O3"
)


_FIND_RUNS = names("-exec -execdir -ok -okdir")


def find(call: Call) -> None:
    args = list(call.args)
    while args and args[0].sure in ("-L", "-H", "-P"):
        args.pop(0)
    roots: list[Arg] = []
    while args and not (args[0].certain and args[0].text[:1] in ("-", "(", "!")):
        roots.append(args.pop(0))
    roots = roots or [Arg(".")]
    call.looks()
    for root in roots:
        if root.may_be_option:
            call.note("write", "caution", "may be given an option that writes: only the run can tell")
        call.scene.read(root)
    narrowed = any(arg.text in _FIND_VALUES and arg.text not in ("-maxdepth", "-mindepth", "-printf") for arg in args)
    while args:
        _test(call, args.pop(0), args, roots, narrowed=narrowed)


def _test(call: Call, arg: Arg, rest: list[Arg], roots: Sequence[Arg], *, narrowed: bool) -> None:
    """One test or action of find; what belongs to it is taken from the `rest`."""
    if arg.text in _FIND_RUNS:
        _each(call, rest, roots)
    elif arg.text == "-delete":
        for root in roots:
            remove(call, root, deep=not narrowed)
    elif arg.text in ("-fprint", "-fprint0", "-fls", "-fprintf"):
        call.scene.write(rest.pop(0) if rest else SOMETHING, "writes a file")
    elif arg.text in ("-anewer", "-cnewer", "-samefile", "-files0-from") or arg.text.startswith("-newer"):
        call.scene.read(rest.pop(0) if rest else SOMETHING)
    elif arg.text in _FIND_VALUES:
        named = rest.pop(0) if rest else SOMETHING
        if arg.text in ("-name", "-iname") and named.known and any(each.text in _FIND_RUNS for each in rest):
            call.scene.suspect(path for root in roots for path in call.scene.likely(root.text, named.text))
    elif arg.sure not in _FIND_PLAIN:
        call.note("write", "caution", "is given something that cannot be read here")


def _each(call: Call, args: list[Arg], roots: Sequence[Arg]) -> None:
    """The command that find runs for what it finds, up to `;` or `+`."""
    command: list[Arg] = []
    while args and args[0].text not in (";", "+"):
        command.append(args.pop(0))
    if args:
        args.pop(0)
    if not command:
        call.note("write", "dangerous", "runs a program that only the run can tell")
        return
    single = len(roots) == 1 and roots[0].certain
    # What it finds lies below where it looks; as a part of a text it can be anything.
    found = [
        Arg(f"{roots[0].text}/…", pattern=f"{roots[0].text}/…*")
        if arg.text == "{}" and single
        else _filled(arg, ["{}"])
        for arg in command
    ]
    call.run(found)


def evaluated(call: Call) -> None:
    """eval: its words are put together and run."""
    if all(arg.sure is not None for arg in call.args):
        call.note("read", "safe", "runs commands")
        call.script(Arg(" ".join(arg.text for arg in call.args)))
    else:
        call.note("write", "dangerous", "runs a text that only the run can tell")


def trap(call: Call) -> None:
    call.looks()
    given = options(call.args, leading=True)
    if given.operands and given.operands[0].text not in ("-", "") and len(given.operands) > 1:
        call.script(given.operands[0])


def command(call: Call) -> None:
    """command, builtin, exec: what follows is run; or, with -v, only looked up."""
    given = options(call.args, names("-a"), leading=True)
    call.looks()
    if given.has("-v", "-V") or not given.operands:
        return
    if given.unsure:
        call.note("write", "dangerous", "runs a program that only the run can tell")
    call.run(given.operands)


def sourced(call: Call) -> None:
    call.note("write", "caution", "runs a script in this shell")
    for arg in call.args[:1]:
        call.scene.read(arg)
        if not arg.certain or arg.text == "/dev/fd/63":
            call.note("write", "dangerous", "runs a script that only the run can tell")


def jobs(call: Call) -> None:
    call.looks()
    if "-x" in call.texts():
        call.run(call.args[call.texts().index("-x") + 1 :] or (SOMETHING,))


def flock(call: Call) -> None:
    given = options(call.args, names("-w -E --timeout --conflict-exit-code"), leading=True)
    for lock in given.operands[:1]:
        call.scene.write(lock, "locks a file")
    rest = given.operands[1:]
    if rest and rest[0].text in ("-c", "--command"):
        call.script(rest[1] if len(rest) > 1 else Arg(""))
    elif rest:
        call.run(rest)


def parallel(call: Call) -> None:
    given = options(
        call.args,
        names("-j -I -a -S -N -n --jobs --arg-file --sshlogin --results --joblog --delay --timeout"),
        leading=True,
    )
    call.note("write", "caution", "runs commands that are put together when it runs")
    words = [arg for arg in given.operands if arg.text not in (":::", "::::", ":::+")]
    if given.has("-S", "--sshlogin", "--sshloginfile"):
        call.note("external", "dangerous", "runs commands on another machine")
    if words and len(words[0].text.split()) == 1:
        call.run([*words, SOMETHING])
    else:
        call.note("write", "dangerous", "runs a text that only the run can tell")


def busybox(call: Call) -> None:
    call.looks()
    if call.args:
        call.run(call.args)


def texted(call: Call) -> None:
    """watch, script -c, su -c: the words are one command line."""
    given = options(call.args, names("-n -d -c -q -t --interval --command"), leading=True)
    call.note("write", "caution", "runs a command again and again" if call.name == "watch" else "runs a command")
    texts = given.values("-c", "--command") or (
        [Arg(" ".join(arg.text for arg in given.operands), all(arg.sure is not None for arg in given.operands))]
        if given.operands
        else []
    )
    for text in texts:
        call.script(text)


_PROJECT = "runs a command of the project"
TABLE: dict[str, Handler] = {
    "env": env,
    **dict.fromkeys(names("bash sh zsh dash ksh ash mksh rbash fish"), shell),
    "xargs": xargs,
    "gxargs": xargs,
    "find": find,
    "gfind": find,
    "eval": evaluated,
    "trap": trap,
    "jobs": jobs,
    **dict.fromkeys(names("command builtin exec"), command),
    **dict.fromkeys(names("source ."), sourced),
    "flock": flock,
    "parallel": parallel,
    **dict.fromkeys(names("busybox toybox"), busybox),
    **dict.fromkeys(names("watch script"), texted),
    **dict.fromkeys(names("nohup setsid unbuffer chronic catchsegv"), wrapper()),
    "time": wrapper("-o -f --output --format"),
    "nice": wrapper("-n --adjustment"),
    "ionice": wrapper("-c -n -p"),
    "stdbuf": wrapper("-i -o -e --input --output --error"),
    "timeout": wrapper("-k -s --kill-after --signal", skip=1),
    "taskset": wrapper("", skip=1),
    "chrt": wrapper("", skip=1),
    "caffeinate": wrapper("-t -w"),
    "xvfb-run": wrapper("-s -n -e", effect="write", risk="caution", reason="runs another command"),
    **dict.fromkeys(
        names("strace ltrace"), wrapper("-e -o -p -s -E", effect="write", risk="caution", reason="watches a program")
    ),
    **dict.fromkeys(
        names("gdb lldb valgrind perf rr"),
        wrapper("-ex -x -p", effect="write", risk="caution", reason="runs a program under watch"),
    ),
    **dict.fromkeys(
        names("sudo doas pkexec su runuser"),
        wrapper(
            "-u -g -h -p -C -r -t -U --user --group",
            effect="write",
            risk="dangerous",
            reason="runs a command with the rights of another user",
        ),
    ),
    **dict.fromkeys(
        names("chroot unshare nsenter bwrap firejail systemd-run capsh setpriv proot fakeroot"),
        wrapper(effect="write", risk="dangerous", reason="runs a command in surroundings of its own"),
    ),
}
