"""Programs that only look, unless one of a few options is given."""

from typing import Literal

from msgspec import Struct

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ProgramCall, ProgramHandler, parse_options
from sylph.tools.shell.judge.word_expansion import ShellArg


class ReadOnlyProgram(Struct, frozen=True):
    """`taking`: options with a value; `writing`: options whose value is a file that is written; `running`: options
    that make it run something or change something else; `reading`: options whose value is a file that is read."""

    paths: Literal["all", "none", "rest", "pair"] = "all"
    """Which operands are files: all, none, all but the first, or two of which the second is written."""
    taking: frozenset[str] = frozenset()
    writing: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()
    reading: frozenset[str] = frozenset()

    @property
    def is_strict(self) -> bool:
        return bool(self.writing or self.running)


def read_only_handler(spec: ReadOnlyProgram) -> ProgramHandler:
    taking = spec.taking | spec.writing | spec.reading | frozenset(each for each in spec.running if each.endswith("="))
    running = frozenset(each.rstrip("=") for each in spec.running)
    taking = frozenset(each.rstrip("=") for each in taking)

    def judge(call: ProgramCall) -> None:
        given = parse_options(call.args, taking)
        call.note_read_only()
        if given.unsure and spec.is_strict:
            call.note("write", "caution", "may be given an option that writes: only the run can tell")
        for name in running:
            if given.has(name):
                call.note("write", "dangerous", f"is told by {name} to run or change something")
        for name in spec.writing:
            for value in given.values(name):
                call.effects.note_write(value, "writes a file")
        for name in spec.reading:
            for value in given.values(name):
                call.effects.note_read(value)
        _note_operands(call, given.operands, spec, patterned=given.has("-e", "--regexp", "-f", "--file", "--files"))

    return judge


def _note_operands(call: ProgramCall, operands: list[ShellArg], spec: ReadOnlyProgram, *, patterned: bool) -> None:
    if spec.paths == "none":
        return
    first = 1 if spec.paths == "rest" and not patterned else 0
    # What is taken for a pattern may be a file all the same.
    call.effects.note_suspects(operand.text for operand in operands[:first])
    for number, operand in enumerate(operands[first:]):
        if spec.paths == "pair" and number >= 1:
            call.effects.note_write(operand, "writes a file")
        elif operand.text != "-":
            call.effects.note_read(operand)


_ALL = name_set(
    "cat tac nl od hd hexdump strings cmp comm paste join fold fmt expand unexpand column rev tsort dir vdir df"
    " zcat gzcat bzcat xzcat  zless md5sum sha1sum sha224sum sha256sum sha384sum sha512sum shasum md5 b2sum cksum"
    " sum nm size readelf objdump wdiff colordiff  realpath readlink zipinfo lsattr getfacl"
    " exa eza lsd look zcmp zdiff"
)
_NONE = name_set(
    "true false : pwd echo sleep seq yes factor numfmt uname whoami id groups who w users last uptime free vmstat"
    " lscpu lsblk nproc arch getconf pgrep pidof  printenv locale tty which whereis basename dirname expr cal"
    " tput clear times tr lsof netstat lspci lsusb lsmod sw_vers logname hostid  apropos whatis getent uuidgen"
    " jobs dirs wait ulimit umask type hash shift break continue return exit"
)
_OPTIONS: dict[str, ReadOnlyProgram] = {
    "head": ReadOnlyProgram(taking=name_set("-n -c --lines --bytes")),
    "tail": ReadOnlyProgram(taking=name_set("-n -c -s --lines --bytes --pid --sleep-interval")),
    "wc": ReadOnlyProgram(reading=name_set("--files0-from")),
    "cut": ReadOnlyProgram(taking=name_set("-d -f -c -b --delimiter --fields --characters --bytes --output-delimiter")),
    "ls": ReadOnlyProgram(
        taking=name_set("-I -w -T --ignore --hide --width --tabsize --block-size --sort --time --color --format")
    ),
    "stat": ReadOnlyProgram(taking=name_set("-c -f --format --printf")),
    "du": ReadOnlyProgram(
        taking=name_set("-d -B -t --max-depth --exclude --block-size --threshold"),
        reading=name_set("-X --files0-from --exclude-from"),
    ),
    "file": ReadOnlyProgram(running=name_set("-C --compile"), reading=name_set("-f --files-from -m --magic-file")),
    "tree": ReadOnlyProgram(
        taking=name_set("-L -P -I --filelimit --charset --sort"), writing=name_set("-o"), running=name_set("-R")
    ),
    "sort": ReadOnlyProgram(
        taking=name_set("-k -t -S --key --field-separator --buffer-size --parallel --batch-size --sort"),
        writing=name_set("-o --output -T --temporary-directory"),
        running=name_set("--compress-program="),
        reading=name_set("--files0-from --random-source"),
    ),
    "shuf": ReadOnlyProgram(
        taking=name_set("-n -i --head-count --input-range"),
        writing=name_set("-o --output"),
        reading=name_set("--random-source"),
    ),
    "uniq": ReadOnlyProgram("pair", taking=name_set("-f -s -w --skip-fields --skip-chars --check-chars")),
    "xxd": ReadOnlyProgram("pair", taking=name_set("-l -s -c -g -o --len --seek --cols --groupsize")),
    "iconv": ReadOnlyProgram(taking=name_set("-f -t --from-code --to-code"), writing=name_set("-o --output")),
    "pr": ReadOnlyProgram(taking=name_set("-h -l -o -w -W -N -D")),
    "grep": ReadOnlyProgram(
        "rest",
        taking=name_set(
            "-e -A -B -C -m -d -D --regexp --after-context --before-context --context --max-count --include"
            " --exclude --exclude-dir --color"
        ),
        reading=name_set("-f --file --exclude-from"),
    ),
    "rg": ReadOnlyProgram(
        "rest",
        taking=name_set(
            "-e -A -B -C -m -g -t -T -j -r -M -E -d --regexp --after-context --before-context --context"
            " --max-count --glob --iglob --type --type-not --threads"
            " --replace --max-columns --encoding --max-depth --sort --sortr --color --colors --max-filesize"
            " --type-add --engine --context-separator"
        ),
        running=name_set("--pre= --hostname-bin="),
        reading=name_set("-f --file --ignore-file"),
    ),
    "ag": ReadOnlyProgram("rest", taking=name_set("-A -B -C -m -G -g --ignore --depth"), running=name_set("--pager=")),
    "ack": ReadOnlyProgram("rest", taking=name_set("-A -B -C -m --type"), running=name_set("--pager= --ackrc=")),
    "fd": ReadOnlyProgram(
        "rest",
        taking=name_set(
            "-e -t -d -E -S -c -j --extension --type --max-depth --exclude --size --color --threads"
            " --changed-within --changed-before"
        ),
        running=name_set("-x -X --exec --exec-batch"),
        reading=name_set("--search-path --base-directory --ignore-file"),
    ),
    "diff": ReadOnlyProgram(
        taking=name_set("-U -C -W -x -I --unified --context --width --exclude --label --color --ignore-matching-lines"),
        reading=name_set("-X --exclude-from --from-file --to-file"),
    ),
    "sdiff": ReadOnlyProgram(writing=name_set("-o --output"), running=name_set("--diff-program=")),
    "diff3": ReadOnlyProgram(running=name_set("--diff-program=")),
    "jq": ReadOnlyProgram(
        "rest",
        taking=name_set("--arg --argjson --indent --tab"),
        reading=name_set("-f --from-file -L --slurpfile --rawfile"),
    ),
    "yq": ReadOnlyProgram(
        "rest",
        taking=name_set("-o -p -I --output-format --input-format --indent"),
        running=name_set("-i --inplace -s --split-exp --in-place"),
    ),
    "xmllint": ReadOnlyProgram(
        taking=name_set("--xpath --encode"), writing=name_set("-o --output"), running=name_set("--shell")
    ),
    "bat": ReadOnlyProgram(
        taking=name_set("-l -r -H --language --line-range --style --theme --color --paging --wrap"),
        running=name_set("--pager="),
    ),
    "less": ReadOnlyProgram(
        taking=name_set("-p -P -j -x -z -b -h -t"),
        writing=name_set("-o -O --log-file --LOG-FILE"),
        running=name_set("-k -T --lesskey-file= --tag-file="),
    ),
    "more": ReadOnlyProgram(taking=name_set("-n")),
    "man": ReadOnlyProgram(
        "none",
        taking=name_set("-s -S -k -f"),
        running=name_set("-P --pager= -H --html= -T --preprocessor= -p -C --config-file= -M"),
    ),
    "date": ReadOnlyProgram(
        "none",
        taking=name_set("-d --date"),
        running=name_set("-s --set="),
        reading=name_set("-f --file -r --reference"),
    ),
    "hostname": ReadOnlyProgram("none", running=name_set("-F --file= -b")),
    "ps": ReadOnlyProgram("none", taking=name_set("-o -p -u -C --sort --format")),
    "top": ReadOnlyProgram("none", taking=name_set("-n -d -p -u")),
    "printf": ReadOnlyProgram("none"),
    "base64": ReadOnlyProgram(
        taking=name_set("-w -b --wrap --break"), writing=name_set("-o --output"), reading=name_set("-i --input")
    ),
    "base32": ReadOnlyProgram(taking=name_set("-w --wrap")),
    "ss": ReadOnlyProgram(
        "none", running=name_set("-K --kill"), reading=name_set("-F --filter"), writing=name_set("-D --diag")
    ),
    "cloc": ReadOnlyProgram(
        taking=name_set("--include-lang --exclude-dir"),
        writing=name_set("--out --report-file --sql --ignored --counted"),
        running=name_set("--extract-with= --diff-list-file="),
    ),
    "tokei": ReadOnlyProgram(taking=name_set("-e -t -s -o --exclude --type --sort --output")),
    "shellcheck": ReadOnlyProgram(taking=name_set("-s -e -S -f -x --shell --exclude --severity --format")),
    "journalctl": ReadOnlyProgram(
        "none",
        taking=name_set("-u -n -p --since --until --unit"),
        running=name_set("--vacuum-size= --vacuum-time= --rotate --flush --sync"),
    ),
}
_SAME = {"egrep": "grep", "fgrep": "grep", "zgrep": "grep", "fdfind": "fd", "batcat": "bat"}


def judge_pager(call: ProgramCall) -> None:
    """A pager also takes commands of its own as arguments."""
    read_only_handler(_OPTIONS[call.name])(call)
    if any(arg.text.startswith("+") for arg in call.args):
        call.note("write", "dangerous", "gives a command to the pager")


def judge_hostname(call: ProgramCall) -> None:
    read_only_handler(_OPTIONS["hostname"])(call)
    if any(not arg.text.startswith("-") for arg in call.args):
        call.note("write", "dangerous", "renames this machine")


def judge_date(call: ProgramCall) -> None:
    read_only_handler(_OPTIONS["date"])(call)
    given = parse_options(call.args, name_set("-d --date -r --reference -f --file"))
    if any(not operand.text.startswith("+") for operand in given.operands):
        call.note("write", "dangerous", "sets the clock")


def judge_printf(call: ProgramCall) -> None:
    call.note_read_only()
    if call.args and call.args[0].text == "-v" and any("[" in arg.text for arg in call.args[1:2]):
        call.note("write", "dangerous", "works out a text that can hide a command")


TABLE: dict[str, ProgramHandler] = {
    **{name: read_only_handler(ReadOnlyProgram()) for name in _ALL},
    **{name: read_only_handler(ReadOnlyProgram("none")) for name in _NONE},
    **{name: read_only_handler(spec) for name, spec in _OPTIONS.items()},
    **{name: read_only_handler(_OPTIONS[other]) for name, other in _SAME.items()},
    "less": judge_pager,
    "more": judge_pager,
    "hostname": judge_hostname,
    "date": judge_date,
    "printf": judge_printf,
}
