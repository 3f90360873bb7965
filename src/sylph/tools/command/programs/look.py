"""Programs that only look, unless one of a few options is given."""

from typing import Literal

from msgspec import Struct

from sylph.tools.command.call import Call, Handler, options
from sylph.tools.command.expand import Arg
from sylph.tools.command.names import names


class Look(Struct, frozen=True):
    """`taking`: options with a value; `writing`: options whose value is a file that is written; `running`: options
    that make it run something or change something else; `reading`: options whose value is a file that is read."""

    paths: Literal["all", "none", "rest", "pair"] = "all"
    """Which operands are files: all, none, all but the first, or two of which the second is written."""
    taking: frozenset[str] = frozenset()
    writing: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()
    reading: frozenset[str] = frozenset()

    @property
    def strict(self) -> bool:
        return bool(self.writing or self.running)


def look(spec: Look) -> Handler:
    taking = spec.taking | spec.writing | spec.reading | frozenset(each for each in spec.running if each.endswith("="))
    running = frozenset(each.rstrip("=") for each in spec.running)
    taking = frozenset(each.rstrip("=") for each in taking)

    def judge(call: Call) -> None:
        given = options(call.args, taking)
        call.looks()
        if given.unsure and spec.strict:
            call.note("write", "caution", "may be given an option that writes: only the run can tell")
        for name in running:
            if given.has(name):
                call.note("write", "dangerous", f"is told by {name} to run or change something")
        for name in spec.writing:
            for value in given.values(name):
                call.scene.write(value, "writes a file")
        for name in spec.reading:
            for value in given.values(name):
                call.scene.read(value)
        _operands(call, given.operands, spec, patterned=given.has("-e", "--regexp", "-f", "--file", "--files"))

    return judge


def _operands(call: Call, operands: list[Arg], spec: Look, *, patterned: bool) -> None:
    if spec.paths == "none":
        return
    first = 1 if spec.paths == "rest" and not patterned else 0
    # What is taken for a pattern may be a file all the same.
    call.scene.suspect(operand.text for operand in operands[:first])
    for number, operand in enumerate(operands[first:]):
        if spec.paths == "pair" and number >= 1:
            call.scene.write(operand, "writes a file")
        elif operand.text != "-":
            call.scene.read(operand)


_ALL = names(
    "cat tac nl od hd hexdump strings cmp comm paste join fold fmt expand unexpand column rev tsort dir vdir df"
    " zcat gzcat bzcat xzcat  zless md5sum sha1sum sha224sum sha256sum sha384sum sha512sum shasum md5 b2sum cksum"
    " sum nm size readelf objdump wdiff colordiff  realpath readlink zipinfo lsattr getfacl"
    " exa eza lsd look zcmp zdiff"
)
_NONE = names(
    "true false : pwd echo sleep seq yes factor numfmt uname whoami id groups who w users last uptime free vmstat"
    " lscpu lsblk nproc arch getconf pgrep pidof  printenv locale tty which whereis basename dirname expr cal"
    " tput clear times tr lsof netstat lspci lsusb lsmod sw_vers logname hostid  apropos whatis getent uuidgen"
    " jobs dirs wait ulimit umask type hash shift break continue return exit"
)
_OPTIONS: dict[str, Look] = {
    "head": Look(taking=names("-n -c --lines --bytes")),
    "tail": Look(taking=names("-n -c -s --lines --bytes --pid --sleep-interval")),
    "wc": Look(reading=names("--files0-from")),
    "cut": Look(taking=names("-d -f -c -b --delimiter --fields --characters --bytes --output-delimiter")),
    "ls": Look(taking=names("-I -w -T --ignore --hide --width --tabsize --block-size --sort --time --color --format")),
    "stat": Look(taking=names("-c -f --format --printf")),
    "du": Look(
        taking=names("-d -B -t --max-depth --exclude --block-size --threshold"),
        reading=names("-X --files0-from --exclude-from"),
    ),
    "file": Look(running=names("-C --compile"), reading=names("-f --files-from -m --magic-file")),
    "tree": Look(taking=names("-L -P -I --filelimit --charset --sort"), writing=names("-o"), running=names("-R")),
    "sort": Look(
        taking=names("-k -t -S --key --field-separator --buffer-size --parallel --batch-size --sort"),
        writing=names("-o --output -T --temporary-directory"),
        running=names("--compress-program="),
        reading=names("--files0-from --random-source"),
    ),
    "shuf": Look(
        taking=names("-n -i --head-count --input-range"), writing=names("-o --output"), reading=names("--random-source")
    ),
    "uniq": Look("pair", taking=names("-f -s -w --skip-fields --skip-chars --check-chars")),
    "xxd": Look("pair", taking=names("-l -s -c -g -o --len --seek --cols --groupsize")),
    "iconv": Look(taking=names("-f -t --from-code --to-code"), writing=names("-o --output")),
    "pr": Look(taking=names("-h -l -o -w -W -N -D")),
    "grep": Look(
        "rest",
        taking=names(
            "-e -A -B -C -m -d -D --regexp --after-context --before-context --context --max-count --include"
            " --exclude --exclude-dir --color"
        ),
        reading=names("-f --file --exclude-from"),
    ),
    "rg": Look(
        "rest",
        taking=names(
            "-e -A -B -C -m -g -t -T -j -r -M -E -d --regexp --after-context --before-context --context"
            " --max-count --glob --iglob --type --type-not --threads"
            " --replace --max-columns --encoding --max-depth --sort --sortr --color --colors --max-filesize"
            " --type-add --engine --context-separator"
        ),
        running=names("--pre= --hostname-bin="),
        reading=names("-f --file --ignore-file"),
    ),
    "ag": Look("rest", taking=names("-A -B -C -m -G -g --ignore --depth"), running=names("--pager=")),
    "ack": Look("rest", taking=names("-A -B -C -m --type"), running=names("--pager= --ackrc=")),
    "fd": Look(
        "rest",
        taking=names(
            "-e -t -d -E -S -c -j --extension --type --max-depth --exclude --size --color --threads"
            " --changed-within --changed-before"
        ),
        running=names("-x -X --exec --exec-batch"),
        reading=names("--search-path --base-directory --ignore-file"),
    ),
    "diff": Look(
        taking=names("-U -C -W -x -I --unified --context --width --exclude --label --color --ignore-matching-lines"),
        reading=names("-X --exclude-from --from-file --to-file"),
    ),
    "sdiff": Look(writing=names("-o --output"), running=names("--diff-program=")),
    "diff3": Look(running=names("--diff-program=")),
    "jq": Look(
        "rest", taking=names("--arg --argjson --indent --tab"), reading=names("-f --from-file -L --slurpfile --rawfile")
    ),
    "yq": Look(
        "rest",
        taking=names("-o -p -I --output-format --input-format --indent"),
        running=names("-i --inplace -s --split-exp --in-place"),
    ),
    "xmllint": Look(taking=names("--xpath --encode"), writing=names("-o --output"), running=names("--shell")),
    "bat": Look(
        taking=names("-l -r -H --language --line-range --style --theme --color --paging --wrap"),
        running=names("--pager="),
    ),
    "less": Look(
        taking=names("-p -P -j -x -z -b -h -t"),
        writing=names("-o -O --log-file --LOG-FILE"),
        running=names("-k -T --lesskey-file= --tag-file="),
    ),
    "more": Look(taking=names("-n")),
    "man": Look(
        "none",
        taking=names("-s -S -k -f"),
        running=names("-P --pager= -H --html= -T --preprocessor= -p -C --config-file= -M"),
    ),
    "date": Look(
        "none", taking=names("-d --date"), running=names("-s --set="), reading=names("-f --file -r --reference")
    ),
    "hostname": Look("none", running=names("-F --file= -b")),
    "ps": Look("none", taking=names("-o -p -u -C --sort --format")),
    "top": Look("none", taking=names("-n -d -p -u")),
    "printf": Look("none"),
    "base64": Look(taking=names("-w -b --wrap --break"), writing=names("-o --output"), reading=names("-i --input")),
    "base32": Look(taking=names("-w --wrap")),
    "ss": Look("none", running=names("-K --kill"), reading=names("-F --filter"), writing=names("-D --diag")),
    "cloc": Look(
        taking=names("--include-lang --exclude-dir"),
        writing=names("--out --report-file --sql --ignored --counted"),
        running=names("--extract-with= --diff-list-file="),
    ),
    "tokei": Look(taking=names("-e -t -s -o --exclude --type --sort --output")),
    "shellcheck": Look(taking=names("-s -e -S -f -x --shell --exclude --severity --format")),
    "journalctl": Look(
        "none",
        taking=names("-u -n -p --since --until --unit"),
        running=names("--vacuum-size= --vacuum-time= --rotate --flush --sync"),
    ),
}
_SAME = {"egrep": "grep", "fgrep": "grep", "zgrep": "grep", "fdfind": "fd", "batcat": "bat"}


def less(call: Call) -> None:
    """A pager also takes commands of its own as arguments."""
    look(_OPTIONS[call.name])(call)
    if any(arg.text.startswith("+") for arg in call.args):
        call.note("write", "dangerous", "gives a command to the pager")


def hostname(call: Call) -> None:
    look(_OPTIONS["hostname"])(call)
    if any(not arg.text.startswith("-") for arg in call.args):
        call.note("write", "dangerous", "renames this machine")


def date(call: Call) -> None:
    look(_OPTIONS["date"])(call)
    given = options(call.args, names("-d --date -r --reference -f --file"))
    if any(not operand.text.startswith("+") for operand in given.operands):
        call.note("write", "dangerous", "sets the clock")


def printf(call: Call) -> None:
    call.looks()
    if call.args and call.args[0].text == "-v" and any("[" in arg.text for arg in call.args[1:2]):
        call.note("write", "dangerous", "works out a text that can hide a command")


TABLE: dict[str, Handler] = {
    **{name: look(Look()) for name in _ALL},
    **{name: look(Look("none")) for name in _NONE},
    **{name: look(spec) for name, spec in _OPTIONS.items()},
    **{name: look(_OPTIONS[other]) for name, other in _SAME.items()},
    "less": less,
    "more": less,
    "hostname": hostname,
    "date": date,
    "printf": printf,
}
